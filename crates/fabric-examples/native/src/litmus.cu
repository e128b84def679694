// Litmus tests of the memory order between PEs 0 and 1 of a team. Every block is a lane with locations of its own, and
// runs `rounds` rounds. Never with checks: what they read between two accesses could hide an order that is wrong.
#undef TANDEM_FABRIC_CHECKS
#include "tandem/fabric.cuh"
#include "tandem_fabric_examples.h"

using namespace tandem::fabric;

namespace {

/// Words of a lane that are data.
constexpr uint32_t WORDS = 256;

struct alignas(128) Lane {
    uint64_t data[WORDS];
    uint64_t source[WORDS];
    alignas(128) uint64_t flag;
    alignas(128) uint64_t word;
};

__device__ uint64_t expected(uint64_t round, uint64_t i) { return (round << 20) ^ (i * 0x9e3779b97f4a7c15); }

/// Message passing: many threads write data to the peer one by one; then a fence and a relaxed signal of one of them.
/// Who has waited for the signal must see all of the data. With EARLY = true the signal comes first, by more time than it
/// takes to be seen.
/// With GROUP = true the fence is the block's and another thread signals, and the waits are those for one of several words.
template <bool EARLY, bool GROUP> __device__ uint64_t message(const tandem_team& team, Lane& lane, uint64_t round) {
    const uint32_t peer = 1 - team.me;
    uint64_t wrong = 0;
    if ((round + blockIdx.x) % 2 == team.me) {
        if (EARLY && threadIdx.x == 0) {
            signal_op(team, &lane.flag, Signal::set, round, peer);
            for (const int64_t begun = clock64(); clock64() - begun < 5000;) {}
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < WORDS; i += blockDim.x) p(team, &lane.data[i], expected(round, i), peer);
        __syncthreads();
        if (GROUP) {
            fence(team, Block());
            if (threadIdx.x == round % blockDim.x) signal_op(team, &lane.flag, Signal::set, round, peer);
        } else if (!EARLY && threadIdx.x == 0) {
            fence(team);
            signal_op(team, &lane.flag, Signal::set, round, peer);
        }
    } else {
        __shared__ size_t index;
        bool is_there;
        if (!GROUP) {
            is_there = signal_wait_until(team, &lane.flag, Compare::ge, round, peer, Block());
        } else if (round % 4 < 2) {
            is_there = wait_until_any(team, &lane.flag, 1, nullptr, Compare::ge, round, peer, 0, Block()) == 0;
        } else {
            is_there = wait_until_some(team, &lane.flag, 1, &index, nullptr, Compare::ge, round, peer, Block()) == 1;
            wrong += is_there && index != 0;
        }
        if (!is_there) return ~uint64_t(0);
        for (uint32_t i = threadIdx.x; i < WORDS; i += blockDim.x) wrong += lane.data[i] != expected(round, i);
        // Read before the peer is told to overwrite.
        __syncthreads();
    }
    return wrong;
}

/// A signal after data: put_signal by a block, of a length that changes.
__device__ uint64_t put_with_signal(const tandem_team& team, Lane& lane, uint64_t round) {
    const uint32_t peer = 1 - team.me;
    const uint32_t count = 1 + uint32_t(round * 37 % WORDS);
    uint64_t wrong = 0;
    if ((round + blockIdx.x) % 2 == team.me) {
        for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) lane.source[i] = expected(round, i);
        __syncthreads();
        // A signal of its own for each direction is not needed: the turns alternate.
        put_signal(team, lane.data, lane.source, count, &lane.flag, Signal::set, round, peer, Block());
        __syncthreads();
    } else {
        if (!signal_wait_until(team, &lane.flag, Compare::ge, round, peer, Block())) return ~uint64_t(0);
        for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) wrong += lane.data[i] != expected(round, i);
        __syncthreads();
    }
    return wrong;
}

/// Store buffering: each writes the peer's word and then reads its own, which the peer writes. Says whether it saw the
/// peer's write; that neither did is forbidden where both are quiet in between.
template <bool QUIET> __device__ bool buffer(const tandem_team& team, Lane& lane, uint64_t round) {
    const uint32_t peer = 1 - team.me;
    signal_op<Order::release>(team, &lane.flag, Signal::set, round, peer);
    if (!signal_wait_until(team, &lane.flag, Compare::ge, round, peer)) return false;
    p(team, &lane.word, round, peer);
    if (QUIET) quiet(team);
    return g(team, &lane.word, team.me) >= round;
}

template <int32_t TEST> __global__ void litmus_kernel(const __grid_constant__ tandem_team team,
                                                      const __grid_constant__ tandem_litmus_args args) {
    if (team.me > 1) return;
    Lane& lane = reinterpret_cast<Lane*>(args.lanes)[blockIdx.x];
    uint8_t* saw = reinterpret_cast<uint8_t*>(args.saw) + blockIdx.x * args.rounds;
    uint64_t wrong = 0;
    for (uint64_t round = 1; round <= args.rounds; round++) {
        if constexpr (TEST == TANDEM_LITMUS_MESSAGE) wrong += message<false, false>(team, lane, round);
        if constexpr (TEST == TANDEM_LITMUS_MESSAGE_EARLY) wrong += message<true, false>(team, lane, round);
        if constexpr (TEST == TANDEM_LITMUS_MESSAGE_GROUP) wrong += message<false, true>(team, lane, round);
        if constexpr (TEST == TANDEM_LITMUS_PUT_SIGNAL) wrong += put_with_signal(team, lane, round);
        if constexpr (TEST == TANDEM_LITMUS_BUFFERING) {
            if (threadIdx.x == 0) saw[round - 1] = buffer<true>(team, lane, round);
        }
        if constexpr (TEST == TANDEM_LITMUS_BUFFERING_LOUD) {
            if (threadIdx.x == 0) saw[round - 1] = buffer<false>(team, lane, round);
        }
        if (detail::is_poisoned(team)) return;
    }
    if (wrong != 0) atomic_add(team, reinterpret_cast<uint64_t*>(args.wrong), wrong, team.me);
    // Rounds that were finished, by all lanes.
    if (threadIdx.x == 0) atomic_add(team, reinterpret_cast<uint64_t*>(args.wrong) + 1, args.rounds, team.me);
}

template <int32_t TEST> int32_t found(tandem_kernel* kernel) {
    *kernel = reinterpret_cast<tandem_kernel>(litmus_kernel<TEST>);
    return TANDEM_OK;
}

static_assert(sizeof(Lane) == TANDEM_LITMUS_LANE_BYTES, "what the caller allocates");

}  // namespace

extern "C" int32_t tandem_litmus(int32_t test, tandem_kernel* kernel) {
    switch (test) {
        case TANDEM_LITMUS_MESSAGE: return found<TANDEM_LITMUS_MESSAGE>(kernel);
        case TANDEM_LITMUS_PUT_SIGNAL: return found<TANDEM_LITMUS_PUT_SIGNAL>(kernel);
        case TANDEM_LITMUS_BUFFERING: return found<TANDEM_LITMUS_BUFFERING>(kernel);
        case TANDEM_LITMUS_MESSAGE_EARLY: return found<TANDEM_LITMUS_MESSAGE_EARLY>(kernel);
        case TANDEM_LITMUS_BUFFERING_LOUD: return found<TANDEM_LITMUS_BUFFERING_LOUD>(kernel);
        case TANDEM_LITMUS_MESSAGE_GROUP: return found<TANDEM_LITMUS_MESSAGE_GROUP>(kernel);
        default: return TANDEM_INVALID;
    }
}
