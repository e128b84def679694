// Sums over G1 of BN254.
#include "group.cuh"

TANDEM_MSM_GROUP(bn254_g1, tandem::Bn254G1::Field)
