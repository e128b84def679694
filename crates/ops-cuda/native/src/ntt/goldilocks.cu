// Transforms over Goldilocks.
#include "small_launch.cuh"

TANDEM_NTT_SMALL_DEFINE(goldilocks, Goldilocks)
