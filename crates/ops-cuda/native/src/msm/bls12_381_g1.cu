// Sums over G1 of BLS12-381.
#include "group.cuh"

TANDEM_MSM_GROUP(bls12_381_g1, tandem::msm::Called<tandem::Fp<tandem::Bls12381Fp>>)
