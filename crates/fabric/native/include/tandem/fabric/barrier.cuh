#pragma once
// Barriers of a team. Every PE writes to every other that it has come, and waits for the same of them: one round, one
// trip over a link. Counts only grow, so a PE that is a round ahead does no harm.
#include "wait.cuh"

namespace tandem {
namespace fabric {
namespace detail {

/// Tells the PEs that the group's threads divide among them, and waits for theirs.
template <class Group> TANDEM_FABRIC_FN bool meet(const tandem_team& team, uint64_t round, Group group) {
    tandem_team_state* mine = own_state(team);
    for (uint32_t pe = group.rank(); pe < team.size; pe += group.size()) {
        if (pe != team.me) store<Order::release>(&state_of(team, pe)->arrived[team.me], round);
    }
    bool met = true;
    for (uint32_t pe = group.rank(); pe < team.size && met; pe += group.size()) {
        if (pe == team.me) continue;
        const uint64_t* word = &mine->arrived[pe];
        met = poll(
            team, pe, [&] { return load<Order::acquire>(word) >= round; },
            [&] {
                report(team, TANDEM_FAULT_BARRIER, pe, reinterpret_cast<uint64_t>(word), load<Order::relaxed>(word),
                       round);
            });
    }
    return met;
}

}  // namespace detail

/// Returns true when every PE of the team has called it: what each did before is seen by all after. One group of each
/// PE calls; for the other threads of a PE, meet them first, or use barrier_grid. False after a fault.
template <class Group = Thread> TANDEM_FABRIC_FN bool barrier(const tandem_team& team, Group group = {}) {
    uint64_t* count = &detail::own_state(team)->round;
    const uint64_t round = detail::load<Order::relaxed>(count) + 1;
    // All have read the count, and the writes of all come before each one's release.
    group.sync();
    if (group.rank() == 0) detail::store<Order::relaxed>(count, round);
    return group.all(detail::reaches_all(team) && detail::meet(team, round, group));
}

#if defined(__CUDACC__)

/// A barrier of all threads of the kernels that run on the team's PEs, one kernel each, of which all blocks are
/// resident (Team::launch sees to it). The last block of a PE to come meets the other PEs. False after a fault.
__device__ __forceinline__ bool barrier_grid(const tandem_team& team) {
    using namespace detail;
    tandem_team_state* mine = own_state(team);
    bool met = true;
    __syncthreads();
    if (Block().rank() == 0) {
        const uint64_t blocks = uint64_t(gridDim.x) * gridDim.y * gridDim.z;
        const uint64_t before = load<Order::relaxed>(&mine->grid_round);
        if (fetch<Add, Order::acq_rel>(&mine->grid_arrived, uint64_t(1)) == blocks - 1) {
            store<Order::relaxed>(&mine->grid_arrived, uint64_t(0));
            met = barrier(team);
            store<Order::release>(&mine->grid_round, before + 1);
        } else {
            met = poll(
                team, ANY_PE, [&] { return load<Order::acquire>(&mine->grid_round) != before; },
                [&] {
                    const uint64_t here = load<Order::relaxed>(&mine->grid_arrived);
                    report(team, TANDEM_FAULT_BARRIER, team.me, reinterpret_cast<uint64_t>(&mine->grid_arrived), here,
                           blocks);
                },
                // Longer than the last block waits for other PEs: then that one names the PE that did not come.
                2);
            // The barrier may have ended because another block of this PE gave up.
            met = met && !is_poisoned(team);
        }
    }
    return __syncthreads_and(met);
}

#endif

}  // namespace fabric
}  // namespace tandem
