// Transforms over BabyBear.
#include "small_launch.cuh"

TANDEM_NTT_SMALL_DEFINE_PASSES(baby_bear, BabyBear)
TANDEM_NTT_SMALL_DEFINE_OVER_FIELD(baby_bear, BabyBear)
