// A kernel that shows whether a team's memory and barriers work.
#include "tandem/fabric.cuh"
#include "tandem_fabric_examples.h"

namespace fabric = tandem::fabric;

namespace {

// In each round every block adds 1 to a count of every PE; behind the barrier each PE must have got all of them.
__global__ void meet_kernel(const __grid_constant__ tandem_team team, const __grid_constant__ tandem_meet_args args) {
    auto* count = reinterpret_cast<uint64_t*>(args.count);
    auto* wrong = reinterpret_cast<uint64_t*>(args.wrong);
    for (uint64_t round = 1; round <= args.rounds; round++) {
        if (threadIdx.x == 0) {
            for (uint32_t pe = 0; pe < team.size; pe++) {
                fabric::atomic_inc(team, count, pe);
            }
        }
        if (!fabric::barrier_grid(team)) {
            return;
        }
        if (threadIdx.x == 0 && fabric::atomic_fetch(team, count, team.me) != round * gridDim.x * team.size) {
            fabric::atomic_inc(team, wrong, team.me);
        }
        // The next round must not begin before all have looked.
        if (!fabric::barrier_grid(team)) {
            return;
        }
    }
}

}  // namespace

extern "C" int32_t tandem_meet(tandem_kernel* kernel) {
    *kernel = reinterpret_cast<tandem_kernel>(meet_kernel);
    return TANDEM_OK;
}
