// Sums over G1 of BLS12_381.
#include "group.cuh"

TANDEM_MSM_GROUP(bls12_381_g1, tandem::Bls12381G1::Field)
