#pragma once
// Addresses of other PEs, the clock of waits, and what is written when something goes wrong.
#include "memory.cuh"

#if !defined(__CUDACC__)
#include <chrono>
#include <thread>
#endif

namespace tandem {
namespace fabric {

/// Stands for a PE that is not known.
constexpr uint32_t ANY_PE = TANDEM_FABRIC_ANY_PE;

/// Whether accesses are checked against the end of their allocation: builds with TANDEM_FABRIC_CHECKS.
#if defined(TANDEM_FABRIC_CHECKS)
constexpr bool CHECKS = true;
#else
constexpr bool CHECKS = false;
#endif

namespace detail {

TANDEM_FABRIC_FN uint64_t window_of(const tandem_team& team, uint32_t pe) {
    return team.heap + team.world[pe] * team.window;
}

TANDEM_FABRIC_FN tandem_team_state* own_state(const tandem_team& team) {
    return reinterpret_cast<tandem_team_state*>(team.own + team.state);
}

TANDEM_FABRIC_FN tandem_team_state* state_of(const tandem_team& team, uint32_t pe) {
    return reinterpret_cast<tandem_team_state*>(window_of(team, pe) + team.state);
}

/// Nanoseconds of a clock that only goes forward.
TANDEM_FABRIC_FN uint64_t now_ns() {
#if defined(__CUDA_ARCH__)
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
#elif !defined(__CUDACC__)
    return uint64_t(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
#else
    return 0;
#endif
}

/// Writes this PE's record if it is the first, and tells every PE of the team that it reaches. Their later waits return at once; the
/// others' end by the timeout.
TANDEM_FABRIC_RARE void report(const tandem_team& team, uint32_t what, uint32_t peer, uint64_t place, uint64_t seen,
                               uint64_t wanted) {
    if (fetch<Exchange, Order::relaxed>(&own_state(team)->faulted, 1u) == 0 && team.fault != nullptr) {
        tandem_fault* record = team.fault;
        store<Order::relaxed>(&record->waiter, team.me);
        store<Order::relaxed>(&record->peer, peer);
        store<Order::relaxed>(&record->place, place);
        store<Order::relaxed>(&record->seen, seen);
        store<Order::relaxed>(&record->wanted, wanted);
        store<Order::release>(&record->what, what);
    }
    for (uint32_t pe = 0; pe < team.size; pe++) {
        if ((team.apart >> pe & 1u) == 0) store<Order::relaxed>(&state_of(team, pe)->poisoned, 1u);
    }
}

/// Whether some PE of the team has had a fault.
TANDEM_FABRIC_FN bool is_poisoned(const tandem_team& team) {
    return load<Order::relaxed>(&own_state(team)->poisoned) != 0;
}

/// Whether the process of PE `pe` has left: acquire, so that all that it did is seen after. ANY_PE has not.
TANDEM_FABRIC_FN bool has_left(const tandem_team& team, uint32_t pe) {
    return pe < team.size && (load<Order::acquire>(&own_state(team)->left) >> pe & 1u) != 0;
}

/// The address at `pe` of memory outside the windows, or 0 if it is not registered.
TANDEM_FABRIC_RARE uint64_t registered(const tandem_team& team, uint64_t at, uint64_t bytes, uint32_t pe) {
    for (uint32_t i = 0; i < team.region_count; i++) {
        const tandem_region& region = team.regions[i];
        const uint64_t mine = region.at[team.world[team.me]];
        const uint64_t offset = at - mine;
        if (mine == 0 || offset >= region.bytes) continue;
        if (CHECKS && bytes > region.bytes - offset) return 0;
        const uint64_t theirs = region.at[team.world[pe]];
        return theirs == 0 ? 0 : theirs + offset;
    }
    return 0;
}

/// Whether this PE has no link to `pe`, one of the team's.
TANDEM_FABRIC_FN bool is_apart(const tandem_team& team, uint32_t pe) { return (team.apart >> (pe & 31u) & 1u) != 0; }

/// Whether all PEs of the team are reached: else the first that is not is a fault. For what is done with all of them.
TANDEM_FABRIC_FN bool reaches_all(const tandem_team& team) {
    if (__builtin_expect(team.apart == 0, 1)) return true;
    uint32_t pe = 0;
    while (!is_apart(team, pe)) pe++;
    report(team, TANDEM_FAULT_APART, pe, team.own + team.state, 0, 0);
    return false;
}

/// What `reach` does where memory is not in the window, or not there at all.
TANDEM_FABRIC_RARE uint64_t reach_outside(const tandem_team& team, uint64_t at, uint64_t bytes, uint32_t pe) {
    const uint64_t offset = at - team.own;
    const bool inside = pe < team.size && offset < team.window;
    if (pe < team.size && is_apart(team, pe)) {
        report(team, TANDEM_FAULT_APART, pe, inside ? window_of(team, pe) + offset : at, 0, bytes);
        return 0;
    }
    if (pe < team.size && !inside) {
        const uint64_t there = registered(team, at, bytes, pe);
        if (there != 0) return there;
    }
    // The place of a fault is that of the peer; where there is no such place, the caller's address.
    report(team, TANDEM_FAULT_BOUNDS, pe, inside ? window_of(team, pe) + offset : at, 0, bytes);
    return 0;
}

/// Whether a range of the windows leaves what is mapped, or the allocation in which it begins.
TANDEM_FABRIC_FN bool leaves(const tandem_team& team, uint64_t offset, uint64_t bytes) {
    if (bytes > team.mapped || offset > team.mapped - bytes) return true;
    // The host writes the entries of other allocations meanwhile, never those of one that may be accessed.
    return team.ends != nullptr && offset + bytes > team.ends[offset / TANDEM_FABRIC_ALIGN];
}

/// The address at `pe` of `bytes` bytes that this PE has at `at`. 0, and a fault, where there are none: memory that is
/// not symmetric, a PE that the team does not have or this one does not reach, and with TANDEM_FABRIC_CHECKS also a range that leaves its allocation
/// or its region.
TANDEM_FABRIC_FN uint64_t reach(const tandem_team& team, uint64_t at, uint64_t bytes, uint32_t pe) {
    const uint64_t offset = at - team.own;
    bool inside = (pe < team.size) & (offset < team.window) & !is_apart(team, pe);
    if (CHECKS) inside = inside && !leaves(team, offset, bytes);
    // This is on the way of every message: short, and without a jump.
    if (__builtin_expect(inside, 1)) return window_of(team, pe) + offset;
    return reach_outside(team, at, bytes, pe);
}

template <class T> TANDEM_FABRIC_FN T* reach(const tandem_team& team, const T* at, size_t count, uint32_t pe) {
    return reinterpret_cast<T*>(reach(team, reinterpret_cast<uint64_t>(at), count * sizeof(T), pe));
}

}  // namespace detail

/// Where `pe` has what this PE has at `at`: an address for ordinary reads and writes. Null for memory that is not
/// symmetric or a PE that the team does not have, or this one does not reach.
template <class T> TANDEM_FABRIC_FN T* remote_ptr(const tandem_team& team, T* at, uint32_t pe) {
    return const_cast<T*>(detail::reach(team, at, 1, pe));
}

/// What this PE did to the memory of others before is ordered before what it does after, except that a later read may
/// come before an earlier write. Of the calling thread; for what other threads did, meet them first.
TANDEM_FABRIC_FN void fence(const tandem_team&) { detail::fence_acq_rel(); }

/// A fence between what all threads of a group did before and what any of them does after.
template <class Group> TANDEM_FABRIC_FN void fence(const tandem_team& team, Group group) {
    group.sync();
    // Every thread on its own: a fence makes a release of the later writes of its own thread, and an acquire of its
    // earlier reads.
    fence(team);
    group.sync();
}

/// All that this thread wrote to others before can be read by everyone; later reads come after it.
TANDEM_FABRIC_FN void quiet(const tandem_team&) { detail::fence_seq_cst(); }

/// All that the threads of a group wrote to others before can be read by everyone; later reads come after it.
template <class Group> TANDEM_FABRIC_FN void quiet(const tandem_team& team, Group group) {
    // The fence of the one thread is for what all wrote before they met.
    group.sync();
    if (group.rank() == 0) quiet(team);
    group.sync();
}

}  // namespace fabric
}  // namespace tandem
