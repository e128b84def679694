// A collective as one kernel on each PE: block b does row b of the table chunk by chunk, the last block opens and closes.
#include <cuda_runtime.h>

#include "combine.cuh"
#include "load.hpp"
#include "tandem/fabric.cuh"

namespace tandem {
namespace exec {
namespace {

using fabric::Block;
using fabric::Compare;
using fabric::wait_until;

template <class T> __device__ __forceinline__ T* pointer(uint64_t at) { return reinterpret_cast<T*>(at); }

/// Waits for all that a chunk of a row needs. Number `number` is its place in the channels' counting.
__device__ __forceinline__ bool wait_for_endpoints(const tandem_team& team, const tandem_exec_transfer& row,
                                                   const tandem_exec_endpoint* endpoints, uint64_t number) {
    for (uint32_t s = 0; s < row.sources; s++) {
        const tandem_exec_endpoint& endpoint = endpoints[s];
        if (endpoint.produced == 0) continue;
        if (!wait_until(team, pointer<uint64_t>(endpoint.produced), Compare::gt, number, uint32_t(endpoint.peer)))
            return false;
    }
    for (uint32_t t = row.sources; t < row.sources + row.targets; t++) {
        const tandem_exec_endpoint& endpoint = endpoints[t];
        if (endpoint.consumed == 0 || number < row.slots) continue;
        const uint64_t freed = number - row.slots;
        if (!wait_until(team, pointer<uint64_t>(endpoint.consumed), Compare::gt, freed, uint32_t(endpoint.peer)))
            return false;
    }
    return true;
}

/// Raises the counters: a chunk of a row was produced, and consumed.
__device__ __forceinline__ void notify(const tandem_exec_transfer& row, const tandem_exec_endpoint* endpoints,
                                       uint64_t number) {
    using fabric::Order;
    // One fence for all words: it makes what the block wrote visible before them.
    fabric::detail::fence_acq_rel();
    for (uint32_t s = 0; s < row.sources + row.targets + row.notifies; s++) {
        const uint64_t word = s < row.sources ? endpoints[s].consumed : endpoints[s].produced;
        if (word != 0) fabric::detail::store<Order::relaxed>(pointer<uint64_t>(word), number + 1);
    }
}

/// Says to those who touch this PE's memory that they may, and waits for what they bring.
__device__ void open_and_close(const tandem_team& team, const tandem_exec_table& table, uint64_t round) {
    using fabric::Order;
    const uint32_t thread = threadIdx.x;
    if (thread < team.size && (table.touched_by >> thread & 1) != 0) {
        uint64_t* mine = pointer<uint64_t>(table.ready) + team.me;
        uint64_t* theirs = fabric::remote_ptr(team, mine, thread);
        if (theirs != nullptr) fabric::detail::store<Order::release>(theirs, round + 1);
    }
    const tandem_exec_endpoint* awaited = pointer<const tandem_exec_endpoint>(table.awaited);
    for (uint32_t i = thread; i < table.awaited_count; i += blockDim.x) {
        const uint64_t all = (round + 1) * awaited[i].at;
        if (!wait_until(team, pointer<uint64_t>(awaited[i].produced), Compare::ge, all, uint32_t(awaited[i].peer)))
            break;
    }
}

template <class T, int OP>
__global__ void __launch_bounds__(THREADS) fused_kernel(const tandem_team team, const tandem_exec_table table) {
    uint64_t* rounds = pointer<uint64_t>(table.rounds) + blockIdx.x;
    const uint64_t round = *rounds;
    __syncthreads();
    if (threadIdx.x == 0) *rounds = round + 1;
    if (blockIdx.x == table.transfer_count) return open_and_close(team, table, round);

    const tandem_exec_transfer row = pointer<const tandem_exec_transfer>(table.transfers)[blockIdx.x];
    const tandem_exec_endpoint* endpoints = pointer<const tandem_exec_endpoint>(table.endpoints) + row.first;
    bool is_ready = true;
    if (threadIdx.x < team.size && (row.touches >> threadIdx.x & 1) != 0) {
        const uint64_t* word = pointer<const uint64_t>(table.ready) + threadIdx.x;
        is_ready = wait_until(team, word, Compare::gt, round, threadIdx.x);
    }
    if (!Block().all(is_ready)) return;
    const uint64_t chunks = (row.bytes + row.chunk - 1) / row.chunk;
    for (uint64_t c = 0; c < chunks; c++) {
        const uint64_t number = round * chunks + c;
        bool goes = true;
        if (threadIdx.x == 0) goes = wait_for_endpoints(team, row, endpoints, number);
        if (!Block().all(goes)) return;
        const uint64_t begin = c * row.chunk, slot = c % row.slots * row.chunk;
        const uint64_t bytes = row.bytes - begin < row.chunk ? row.bytes - begin : row.chunk;
        const auto place = [&](const tandem_exec_endpoint& endpoint) {
            return endpoint.at + (endpoint.consumed != 0 ? slot : begin);
        };
        const auto source = [&](uint32_t s) { return place(endpoints[s]); };
        const auto target = [&](uint32_t t) { return place(endpoints[row.sources + t]); };
        move<T, OP>(source, row.sources, target, row.targets, bytes, threadIdx.x, blockDim.x);
        __syncthreads();
        if (threadIdx.x == 0) notify(row, endpoints, number);
    }
}

template <class T, int OP> __global__ void __launch_bounds__(THREADS) combine_kernel(const tandem_exec_move args) {
    const auto source = [&](uint32_t s) { return args.at[s]; };
    const auto target = [&](uint32_t t) { return args.at[args.sources + t]; };
    const uint64_t thread = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    move<T, OP>(source, args.sources, target, args.targets, args.bytes, thread, uint64_t(gridDim.x) * blockDim.x);
}

/// Blocks of a kernel that does nothing else on its device: one a multiprocessor is enough to fill the links, and leaves
/// room for others.
constexpr uint32_t COMBINE_BLOCKS = 128;

}  // namespace
}  // namespace exec
}  // namespace tandem

extern "C" int32_t tandem_exec_fused(const tandem_team* team, const tandem_exec_table* table, tandem_stream stream) {
    tandem::exec::with_any_kind(table->kind, table->op, [&](auto number, auto op) {
        tandem::exec::fused_kernel<decltype(number), decltype(op)::value>
            <<<table->transfer_count + 1, tandem::exec::THREADS, 0, stream>>>(*team, *table);
    });
    return int32_t(cudaGetLastError());
}

extern "C" int32_t tandem_exec_limit(uint32_t* blocks) {
    int device = 0, processors = 0, least = 1 << 20, other = 1 << 20;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess) error = tandem::exec::load_messages(&least);
    if (error == cudaSuccess) error = tandem::exec::load_resident(&other);
    if (other < least) least = other;
    for (int32_t kind = TANDEM_EXEC_U32; kind <= TANDEM_EXEC_BF16 && error == cudaSuccess; kind++) {
        for (int32_t op = TANDEM_EXEC_SUM; op <= TANDEM_EXEC_XOR && error == cudaSuccess; op++) {
            tandem::exec::with_any_kind(kind, op, [&](auto number, auto h) {
                int each = 0;
                constexpr auto kernel = tandem::exec::fused_kernel<decltype(number), decltype(h)::value>;
                constexpr auto combine = tandem::exec::combine_kernel<decltype(number), decltype(h)::value>;
                cudaFuncAttributes attributes;
                error = cudaFuncGetAttributes(&attributes, combine);
                if (error != cudaSuccess) return;
                error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, tandem::exec::THREADS, 0);
                if (each < least) least = each;
            });
        }
    }
    *blocks = uint32_t(least * processors);
    if (error != cudaSuccess) (void)cudaGetLastError();
    return int32_t(error);
}

extern "C" int32_t tandem_exec_combine(const tandem_exec_move* move, tandem_stream stream) {
    tandem::exec::with_any_kind(move->kind, move->op, [&](auto number, auto op) {
        const uint64_t blocks = move->bytes / (16 * tandem::exec::THREADS) + 1;
        const uint32_t grid = uint32_t(blocks < tandem::exec::COMBINE_BLOCKS ? blocks : tandem::exec::COMBINE_BLOCKS);
        tandem::exec::combine_kernel<decltype(number), decltype(op)::value>
            <<<grid, tandem::exec::THREADS, 0, stream>>>(*move);
    });
    return int32_t(cudaGetLastError());
}
