// Transforms over BabyBear.
#include "small_launch.cuh"

TANDEM_NTT_SMALL_DEFINE(baby_bear, BabyBear)
