// Transforms of complex numbers of two doubles.
#include "complex.cuh"

TANDEM_NTT_SMALL_DEFINE_PASSES(complex64, Complex<double>)
TANDEM_NTT_SMALL_DEFINE_SUM(complex64, Complex<double>)
