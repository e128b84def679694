// Sums over G2 of BLS12_381.
#include "group.cuh"

TANDEM_MSM_GROUP(bls12_381_g2, tandem::Bls12381G2::Field)
