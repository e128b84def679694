// Sums over G2 of BLS12-381.
#include "group.cuh"

TANDEM_MSM_GROUP(bls12_381_g2, tandem::msm::Called<tandem::Fp2<tandem::Bls12381Fp>>)
