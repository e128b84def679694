// Kernels that measure: transfers repeated by threads, warps, blocks or grids, and the round trip of a word.
#include "tandem/fabric.cuh"

using namespace tandem::fabric;

namespace {

constexpr uint32_t MAX_THREADS = 1024;

template <class Group> __device__ void transfer(const tandem_team& team, const tandem_bench_transfer_args& args,
                                                uint64_t at, uint64_t vectors, Group group) {
    uint4* to = reinterpret_cast<uint4*>(args.to) + at;
    const uint4* from = reinterpret_cast<const uint4*>(args.from) + at;
    if (args.is_get != 0) {
        get(team, to, from, vectors, args.peer, group);
    } else {
        put(team, to, from, vectors, args.peer, group);
    }
}

/// Each block, or its first thread or warp, moves its part of each round, and is quiet at the end. A kernel for each scope:
/// a thread on its own may have registers that the threads of a block may not.
template <int32_t SCOPE> __global__ void __launch_bounds__(SCOPE == TANDEM_SCOPE_BLOCK ? MAX_THREADS : 32)
    transfer_kernel(const __grid_constant__ tandem_team team, const __grid_constant__ tandem_bench_transfer_args args) {
    const uint64_t vectors = args.bytes / 16, part = (vectors + gridDim.x - 1) / gridDim.x;
    const uint64_t begin = part * blockIdx.x < vectors ? part * blockIdx.x : vectors;
    const uint64_t mine = vectors - begin < part ? vectors - begin : part;
    uint64_t turn = 0;
    for (uint32_t round = 0; round < args.rounds; round++) {
        if constexpr (SCOPE == TANDEM_SCOPE_BLOCK) {
            transfer(team, args, turn + begin, mine, Block());
        } else if constexpr (SCOPE == TANDEM_SCOPE_WARP) {
            transfer(team, args, turn + begin, mine, Warp());
        } else if (threadIdx.x == 0) {
            transfer(team, args, turn + begin, mine, Thread());
        }
        turn += vectors;
        if (turn * 16 == args.room) turn = 0;
    }
    quiet(team, Block());
}

/// What PE `me` sends.
__device__ uint64_t value_of(uint64_t round, uint32_t me) { return (2 * round + me) * 0x9e3779b97f4a7c15; }

template <int32_t FORM> __global__ void pingpong_kernel(const __grid_constant__ tandem_team team,
                                                        const __grid_constant__ tandem_bench_pingpong_args args) {
    uint64_t* word = reinterpret_cast<uint64_t*>(args.word);
    uint64_t* data = reinterpret_cast<uint64_t*>(args.data);
    // Others watch.
    if (team.me > 1) return;
    const uint32_t peer = 1 - team.me;
    uint64_t wrong = 0;
    const auto hit = [&](uint64_t round) {
        if constexpr (FORM == TANDEM_PINGPONG_SIGNAL) signal_op(team, word, Signal::set, round, peer);
        if constexpr (FORM == TANDEM_PINGPONG_ATOMIC) atomic_inc(team, word, peer);
        if constexpr (FORM == TANDEM_PINGPONG_MESSAGE) {
            send(team, reinterpret_cast<Message*>(word), value_of(round, team.me), round, peer);
        }
        if constexpr (FORM == TANDEM_PINGPONG_PUT_SIGNAL) {
            data[0] = value_of(round, team.me);
            put_signal(team, data + 1, data, 1, word, Signal::set, round, peer);
        }
    };
    const auto wait = [&](uint64_t round) {
        if constexpr (FORM == TANDEM_PINGPONG_MESSAGE) {
            uint64_t got = 0;
            const bool done = receive(team, reinterpret_cast<const Message*>(word), Compare::ge, round, &got, peer);
            wrong += got != value_of(round, peer);
            return done;
        } else {
            const bool done = signal_wait_until(team, word, Compare::ge, round, peer);
            if constexpr (FORM == TANDEM_PINGPONG_PUT_SIGNAL) wrong += data[1] != value_of(round, peer);
            return done;
        }
    };
    for (uint64_t round = 1; round <= args.rounds; round++) {
        if (team.me == 0) hit(round);
        if (!wait(round)) return;
        if (team.me == 1) hit(round);
    }
    *reinterpret_cast<uint64_t*>(args.wrong) = wrong;
}

template <int32_t FORM, class Group>
__device__ bool inside(const tandem_team& team, uint64_t* to, uint64_t* from, uint64_t round, Group group) {
    const uint32_t root = uint32_t(round % team.size);
    if constexpr (FORM == TANDEM_INSIDE_BARRIER) return barrier(team, group);
    if constexpr (FORM == TANDEM_INSIDE_BROADCAST) return broadcast(team, to, from, 1, root, group);
    if constexpr (FORM == TANDEM_INSIDE_ALL_REDUCE) return all_reduce(team, to, from, 1, Sum(), group);
    if constexpr (FORM == TANDEM_INSIDE_ALL_GATHER) return all_gather(team, to, from, 1, group);
    if constexpr (FORM == TANDEM_INSIDE_ALL_TO_ALL) return all_to_all(team, to, from, 1, group);
}

/// What PE `pe` sends to PE `to` in a round.
__device__ uint64_t sent(uint64_t round, uint32_t pe, uint32_t to) {
    return (round * 1024 + pe * 32 + to) * 0x9e3779b97f4a7c15;
}

/// Words of the result that are wrong.
template <int32_t FORM> __device__ uint64_t differing(const tandem_team& team, const uint64_t* to, uint64_t round) {
    const uint32_t root = uint32_t(round % team.size), other = FORM == TANDEM_INSIDE_ALL_TO_ALL ? team.me : 0;
    if (FORM == TANDEM_INSIDE_BARRIER) return 0;
    if (FORM == TANDEM_INSIDE_BROADCAST) return to[0] != sent(round, root, 0);
    uint64_t sum = 0, wrong = 0;
    for (uint32_t pe = 0; pe < team.size; pe++) {
        sum += sent(round, pe, other);
        if (FORM != TANDEM_INSIDE_ALL_REDUCE) wrong += to[pe] != sent(round, pe, other);
    }
    return FORM == TANDEM_INSIDE_ALL_REDUCE ? to[0] != sum : wrong;
}

template <int32_t FORM, class Group> __global__ void __launch_bounds__(MAX_THREADS)
    inside_kernel(const __grid_constant__ tandem_team team, const __grid_constant__ tandem_bench_inside_args args) {
    uint64_t* from = reinterpret_cast<uint64_t*>(args.from);
    uint64_t* to = reinterpret_cast<uint64_t*>(args.to);
    const Group group = {};
    // Those that the group does not need.
    if (group.rank() != threadIdx.x) return;
    uint64_t wrong = 0;
    for (uint64_t round = 1; round <= args.rounds; round++) {
        if (group.rank() == 0 && FORM != TANDEM_INSIDE_BARRIER) {
            const uint32_t words = FORM == TANDEM_INSIDE_ALL_TO_ALL ? team.size : 1;
            for (uint32_t pe = 0; pe < words; pe++) from[pe] = sent(round, team.me, pe);
        }
        group.sync();
        if (!inside<FORM>(team, to, from, round, group)) {
            wrong = uint64_t(1) << 63;
            break;
        }
        if (group.rank() == 0) wrong += differing<FORM>(team, to, round);
    }
    if (group.rank() == 0) *reinterpret_cast<uint64_t*>(args.wrong) = wrong;
}

template <int32_t FORM> int32_t inside_of(int32_t scope, tandem_kernel* kernel) {
    switch (scope) {
        case TANDEM_SCOPE_THREAD: *kernel = reinterpret_cast<tandem_kernel>(inside_kernel<FORM, Thread>); break;
        case TANDEM_SCOPE_WARP: *kernel = reinterpret_cast<tandem_kernel>(inside_kernel<FORM, Warp>); break;
        case TANDEM_SCOPE_BLOCK: *kernel = reinterpret_cast<tandem_kernel>(inside_kernel<FORM, Block>); break;
        default: return TANDEM_INVALID;
    }
    return TANDEM_OK;
}

}  // namespace

extern "C" int32_t tandem_bench_inside(int32_t form, int32_t scope, tandem_kernel* kernel) {
    switch (form) {
        case TANDEM_INSIDE_BARRIER: return inside_of<TANDEM_INSIDE_BARRIER>(scope, kernel);
        case TANDEM_INSIDE_BROADCAST: return inside_of<TANDEM_INSIDE_BROADCAST>(scope, kernel);
        case TANDEM_INSIDE_ALL_REDUCE: return inside_of<TANDEM_INSIDE_ALL_REDUCE>(scope, kernel);
        case TANDEM_INSIDE_ALL_GATHER: return inside_of<TANDEM_INSIDE_ALL_GATHER>(scope, kernel);
        case TANDEM_INSIDE_ALL_TO_ALL: return inside_of<TANDEM_INSIDE_ALL_TO_ALL>(scope, kernel);
        default: return TANDEM_INVALID;
    }
}

extern "C" int32_t tandem_bench_transfer(const tandem_team* team, const tandem_bench_transfer_args* args,
                                         tandem_stream stream) {
    if (team == nullptr || args == nullptr || args->blocks == 0 || args->threads == 0 || args->threads > MAX_THREADS ||
        args->threads % 32 != 0 || (args->to | args->from | args->bytes) % 16 != 0 || args->bytes == 0 ||
        args->room == 0 || args->room % args->bytes != 0 || args->peer >= team->size) {
        return TANDEM_INVALID;
    }
    // Threads that would only watch are not there.
    switch (args->scope) {
        case TANDEM_SCOPE_THREAD:
            transfer_kernel<TANDEM_SCOPE_THREAD><<<args->blocks, 32, 0, stream>>>(*team, *args);
            break;
        case TANDEM_SCOPE_WARP:
            transfer_kernel<TANDEM_SCOPE_WARP><<<args->blocks, 32, 0, stream>>>(*team, *args);
            break;
        case TANDEM_SCOPE_BLOCK:
            transfer_kernel<TANDEM_SCOPE_BLOCK><<<args->blocks, args->threads, 0, stream>>>(*team, *args);
            break;
        default: return TANDEM_INVALID;
    }
    return int32_t(cudaGetLastError());
}

extern "C" int32_t tandem_bench_pingpong(int32_t form, tandem_kernel* kernel) {
    switch (form) {
        case TANDEM_PINGPONG_SIGNAL:
            *kernel = reinterpret_cast<tandem_kernel>(pingpong_kernel<TANDEM_PINGPONG_SIGNAL>);
            return TANDEM_OK;
        case TANDEM_PINGPONG_ATOMIC:
            *kernel = reinterpret_cast<tandem_kernel>(pingpong_kernel<TANDEM_PINGPONG_ATOMIC>);
            return TANDEM_OK;
        case TANDEM_PINGPONG_MESSAGE:
            *kernel = reinterpret_cast<tandem_kernel>(pingpong_kernel<TANDEM_PINGPONG_MESSAGE>);
            return TANDEM_OK;
        case TANDEM_PINGPONG_PUT_SIGNAL:
            *kernel = reinterpret_cast<tandem_kernel>(pingpong_kernel<TANDEM_PINGPONG_PUT_SIGNAL>);
            return TANDEM_OK;
        default: return TANDEM_INVALID;
    }
}
