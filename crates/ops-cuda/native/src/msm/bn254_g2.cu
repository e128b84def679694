// Sums over G2 of BN254.
#include "group.cuh"

TANDEM_MSM_GROUP(bn254_g2, tandem::msm::Called<tandem::Fp2<tandem::Bn254Fp>>)
