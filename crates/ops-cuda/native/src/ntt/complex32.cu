// Transforms of complex numbers of two floats.
#include "complex.cuh"

TANDEM_NTT_SMALL_DEFINE_PASSES(complex32, Complex<float>)
TANDEM_NTT_SMALL_DEFINE_SUM(complex32, Complex<float>)
