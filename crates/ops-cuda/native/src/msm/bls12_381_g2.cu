// Sums over G2 of BLS12-381.
#include "group.cuh"

TANDEM_MSM_GROUP(bls12_381_g2, tandem::msm::CalledFp2<tandem::Bls12381Fp>)
