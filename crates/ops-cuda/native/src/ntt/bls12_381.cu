// Transforms over the scalar field of BLS12-381.
#include "launch.cuh"

TANDEM_NTT_DEFINE(bls12_381, Bls12381Fr)
