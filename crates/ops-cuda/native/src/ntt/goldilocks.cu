// Transforms over Goldilocks.
#include "small_launch.cuh"

TANDEM_NTT_SMALL_DEFINE_PASSES(goldilocks, Goldilocks)
TANDEM_NTT_SMALL_DEFINE_OVER_FIELD(goldilocks, Goldilocks)
