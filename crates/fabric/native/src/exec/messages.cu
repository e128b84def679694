// A collective of small data as one kernel on each PE. Block b does the rows of worker b, those that send before those that receive.
// The LL protocol of NCCL: each word of a message carries 32 bits of data and, as its flag, the round (exec/protocol.rs). One store brings both, so that
// nobody waits for a counter, and what is there from an earlier round cannot pass for this one's. exec/worker.rs does the same for PEs that are
// threads, with the same table.
#include <cuda_runtime.h>

#include "combine.cuh"
#include "load.hpp"
#include "tandem/fabric.cuh"

namespace tandem {
namespace exec {
namespace {

using fabric::Block;
using fabric::Compare;
using fabric::Order;

/// Words of 64 bits of a worker's rows and endpoints at the most: 32 PEs that all send to all.
constexpr uint32_t MAX_WORDS = TANDEM_EXEC_MESSAGE_WORDS;
/// Slots of a ring: rounds take turns.
constexpr uint64_t MESSAGE_SLOTS = 2;

template <class T> __device__ __forceinline__ T* pointer(uint64_t at) { return reinterpret_cast<T*>(at); }

/// 8 bytes, or as many as there are.
__device__ __forceinline__ uint64_t read(uint64_t at, uint64_t bytes) {
    if (bytes >= 8 && at % 8 == 0) return *pointer<const uint64_t>(at);
    uint64_t value = 0;
    for (uint32_t i = 0; i < 8 && i < bytes; i++) value |= uint64_t(*pointer<const uint8_t>(at + i)) << 8 * i;
    return value;
}

__device__ __forceinline__ void write(uint64_t at, uint64_t bytes, uint64_t value) {
    if (bytes >= 8 && at % 8 == 0) {
        *pointer<uint64_t>(at) = value;
        return;
    }
    for (uint32_t i = 0; i < 8 && i < bytes; i++) *pointer<uint8_t>(at + i) = uint8_t(value >> 8 * i);
}

/// Never 0, which fresh memory holds.
__device__ __forceinline__ uint64_t flag_of(uint64_t round) { return round % 0xffffffffu + 1; }

__device__ __forceinline__ void send(uint64_t at, uint64_t data, uint64_t flag) {
#if defined(__CUDA_ARCH__)  // What the host's pass is not told of.
    fabric::detail::store_pair(pointer<uint64_t>(at), (data & 0xffffffffu) | flag << 32, data >> 32 | flag << 32);
#endif
}

/// Waits for 8 bytes of a round.
__device__ __forceinline__ bool receive(const tandem_team& team, const tandem_exec_endpoint& endpoint, uint64_t at,
                                        uint64_t flag, uint64_t& data) {
    uint64_t low = 0, high = 0;
    const auto poll = [&] {
#if defined(__CUDA_ARCH__)
        fabric::detail::load_pair(pointer<const uint64_t>(at), low, high);
#endif
        return low >> 32 == flag && high >> 32 == flag;
    };
    const auto late = [&] {
        fabric::detail::report(team, TANDEM_FAULT_WAIT, uint32_t(endpoint.peer), at, low >> 32, flag);
    };
    const bool is_there = fabric::detail::poll(team, uint32_t(endpoint.peer), poll, late);
    data = (low & 0xffffffffu) | high << 32;
    return is_there;
}

template <class T, int OP> __device__ __forceinline__ uint64_t combined_word(uint64_t a, uint64_t b) {
    constexpr int COUNT = 8 / sizeof(T);
    T x[COUNT], y[COUNT];
    memcpy(x, &a, 8);
    memcpy(y, &b, 8);
#pragma unroll
    for (int i = 0; i < COUNT; i++) x[i] = combined<T, OP>(x[i], y[i]);
    memcpy(&a, x, 8);
    return a;
}

__global__ void __launch_bounds__(THREADS) messages_kernel(const tandem_team team, const tandem_exec_messages args) {
    __shared__ alignas(16) uint64_t words[MAX_WORDS];
    __shared__ uint64_t shared_round;
    const uint64_t* from = pointer<const uint64_t>(args.workers) + uint64_t(blockIdx.x) * args.words;
    for (uint32_t i = threadIdx.x; i < args.words; i += blockDim.x) words[i] = from[i];
    uint64_t* rounds = pointer<uint64_t>(args.rounds) + blockIdx.x;
    if (threadIdx.x == 0) {
        shared_round = *rounds + 1;
        *rounds = shared_round;
    }
    __syncthreads();
    const uint64_t round = shared_round, flag = flag_of(round);
    const auto* rows = reinterpret_cast<const tandem_exec_transfer*>(words);
    const auto* all = reinterpret_cast<const tandem_exec_endpoint*>(rows + args.rows);
    for (uint32_t r = 0; r < args.rows; r++) {
        const tandem_exec_transfer& row = rows[r];
        const tandem_exec_endpoint* endpoints = all + row.first;
        // A slot is free when its reader has said so two rounds ago. No one is there to be waited for in the first rounds.
        if (round > MESSAGE_SLOTS) {
            bool has_room = true;
            for (uint32_t t = row.sources + threadIdx.x; t < row.sources + row.targets; t += blockDim.x) {
                if (endpoints[t].consumed == 0) continue;
                const uint64_t* told = pointer<const uint64_t>(endpoints[t].consumed);
                has_room = wait_until(team, told, Compare::ge, round - MESSAGE_SLOTS, uint32_t(endpoints[t].peer));
            }
            if (!Block().all(has_room)) return;
        }
        const uint64_t slot = round % MESSAGE_SLOTS * row.chunk;
        bool is_there = true;
        for (uint64_t i = threadIdx.x; 8 * i < row.bytes && is_there; i += blockDim.x) {
            const uint64_t left = row.bytes - 8 * i;
            uint64_t sum = 0;
            for (uint32_t s = 0; s < row.sources && is_there; s++) {
                const tandem_exec_endpoint& endpoint = endpoints[s];
                uint64_t value = 0;
                if (endpoint.consumed == 0) {
                    value = read(endpoint.at + 8 * i, left);
                } else {
                    is_there = receive(team, endpoint, endpoint.at + slot + 16 * i, flag, value);
                }
                if (s == 0) {
                    sum = value;
                } else {
                    with_any_kind(args.kind, args.op, [&](auto number, auto op) {
                        sum = combined_word<decltype(number), decltype(op)::value>(sum, value);
                    });
                }
            }
            if (!is_there) break;
            for (uint32_t t = row.sources; t < row.sources + row.targets; t++) {
                const tandem_exec_endpoint& endpoint = endpoints[t];
                if (endpoint.consumed == 0) {
                    write(endpoint.at + 8 * i, left, sum);
                } else {
                    send(endpoint.at + slot + 16 * i, sum, flag);
                }
            }
        }
        if (!Block().all(is_there)) return;
        for (uint32_t s = threadIdx.x; s < row.sources; s += blockDim.x) {
            if (endpoints[s].consumed != 0)
                fabric::detail::store<Order::release>(pointer<uint64_t>(endpoints[s].consumed), round);
        }
    }
}

}  // namespace

cudaError_t load_messages(int* blocks) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, messages_kernel, THREADS, 0);
}

}  // namespace exec
}  // namespace tandem

extern "C" int32_t tandem_exec_messages_run(const tandem_team* team, const tandem_exec_messages* args,
                                            tandem_stream stream) {
    if (args->words > tandem::exec::MAX_WORDS) return int32_t(cudaErrorInvalidValue);
    tandem::exec::messages_kernel<<<args->worker_count, tandem::exec::THREADS, 0, stream>>>(*team, *args);
    return int32_t(cudaGetLastError());
}
