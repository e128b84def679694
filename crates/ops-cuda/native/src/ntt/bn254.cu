// Transforms over the scalar field of BN254.
#include "launch.cuh"

TANDEM_NTT_DEFINE(bn254, Bn254Fr)
