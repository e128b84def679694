// A kernel that stays for a while and does what the host writes into a mailbox: a launch costs more than a small message.
#include <cuda_runtime.h>

#include "combine.cuh"
#include "load.hpp"
#include "tandem/fabric.cuh"

namespace tandem {
namespace exec {
namespace {

constexpr uint32_t WORDS = TANDEM_EXEC_COMMAND_WORDS;
constexpr uint32_t END = TANDEM_EXEC_COMMAND_END;

/// Bytes of a chunk on the way through host memory.
constexpr uint64_t CHUNK = 16 << 10;

struct Command {
    uint32_t halves[WORDS];
    uint32_t number;
    __device__ uint64_t word(uint32_t i) const { return halves[2 * i] | uint64_t(halves[2 * i + 1]) << 32; }
    __device__ uint64_t bytes() const { return word(0); }
    __device__ uint32_t sources() const { return halves[2] & 0xff; }
    __device__ uint32_t targets() const { return halves[2] >> 8 & 0xff; }
    __device__ int32_t kind() const { return int32_t(halves[2] >> 16 & 0xff); }
    __device__ int32_t how() const { return int32_t(halves[2] >> 24); }
    __device__ uint32_t blocks() const { return halves[3] & 0xffff; }
    /// Blocks after these, for what goes through host memory, and what they do: TANDEM_EXEC_WAY_*.
    __device__ uint32_t way_blocks() const { return halves[3] >> 16 & 0xff; }
    __device__ uint32_t way() const { return halves[3] >> 24; }
    __device__ uint64_t way_bytes() const { return halves[4]; }
    __device__ uint64_t turn() const { return halves[5]; }
    __device__ uint64_t ring() const { return word(3); }
    __device__ uint64_t flags() const { return word(4); }
    __device__ uint64_t at(uint32_t i) const { return word((way() == TANDEM_EXEC_WAY_NONE ? 2 : 5) + i); }
};

/// The first warp looks for a command other than `last`: lane i reads word i, and all must have one number. 0 if there is none yet.
/// Acquiring here costs less than a fence afterwards, which takes 0.6 us.
__device__ __forceinline__ uint32_t look(const uint64_t* words, uint32_t last, Command& command) {
    const uint64_t word = fabric::detail::load<fabric::Order::acquire>(words + threadIdx.x);
    const uint32_t number = __shfl_sync(0xffffffffu, uint32_t(word >> 32), 0);
    if (!__all_sync(0xffffffffu, uint32_t(word >> 32) == number) || number == last || number == 0) return 0;
    command.halves[threadIdx.x] = uint32_t(word);
    return number;
}

/// The part of a copy that takes the way through host memory: the way's blocks take chunks in turns. Who sends tells the receiver, in
/// its memory, how many chunks are there. False where nothing came for too long.
__device__ bool through_host(const Command& command, uint32_t block, uint64_t timeout_ns) {
    using fabric::Order;
    uint64_t* flag = reinterpret_cast<uint64_t*>(command.flags()) + block;
    const bool is_sender = command.way() != TANDEM_EXEC_WAY_RECEIVE;
    const uint64_t all = command.way_bytes(), first = command.bytes();
    const uint64_t step = command.way_blocks() * CHUNK;
    uint64_t number = command.turn() << 32;
    for (uint64_t begin = block * CHUNK; begin < all; begin += step) {
        number++;
        const uint64_t bytes = all - begin < CHUNK ? all - begin : CHUNK;
        if (is_sender) {
            // Behind what goes over the links; the PE's own target, if it has one, is the first.
            const auto source = [&](uint32_t) { return command.at(0) + first + begin; };
            const auto target = [&](uint32_t t) { return t == 0 ? command.ring() + begin : command.at(1) + first + begin; };
            const uint32_t targets = command.way() == TANDEM_EXEC_WAY_SEND_AND_KEEP ? 2 : 1;
            move<uint8_t, TANDEM_EXEC_SUM>(source, 1, target, targets, bytes, threadIdx.x, blockDim.x);
            __syncthreads();
            if (threadIdx.x == 0) {
                fabric::detail::fence_acq_rel();
                fabric::detail::store<Order::relaxed>(flag, number);
            }
            continue;
        }
        bool is_there = true;
        if (threadIdx.x == 0) {
            const uint64_t begun = fabric::detail::now_ns();
            while (fabric::detail::load<Order::acquire>(flag) < number && is_there) {
                is_there = fabric::detail::now_ns() - begun < timeout_ns;
            }
        }
        if (!fabric::Block().all(is_there)) return false;
        const auto source = [&](uint32_t) { return command.ring() + begin; };
        const auto target = [&](uint32_t) { return command.at(0) + begin; };
        move<uint8_t, TANDEM_EXEC_SUM>(source, 1, target, 1, bytes, threadIdx.x, blockDim.x);
    }
    return true;
}

__global__ void __launch_bounds__(THREADS)
    resident_kernel(tandem_exec_mailbox* mailbox, uint64_t* relay, uint32_t last, uint64_t ended, uint64_t linger_ns,
                    uint64_t timeout_ns) {
    using fabric::Order;
    __shared__ Command command;
    const bool is_leader = blockIdx.x == 0;
    for (;;) {
        if (threadIdx.x < 32) {
            // The leader reads from the host, the others what it passes on: blocks that all read from the host keep each other
            // waiting, for 70 us where there are 32. All threads of the block have read what the command before said: they have
            // met since.
            const uint64_t begun = fabric::detail::now_ns();
            uint32_t number;
            for (;;) {
                number = look(is_leader ? mailbox->command : relay, last, command);
                if (number != 0) break;
                if (is_leader && fabric::detail::now_ns() - begun > linger_ns) {
                    number = END;
                    break;
                }
            }
            __syncwarp();
            if (is_leader && (number == END || command.blocks() + command.way_blocks() > 1)) {
                // What was there before the command is visible at the system's scope already; who reads this acquires.
                const uint64_t data = number == END ? 0 : command.halves[threadIdx.x];
                fabric::detail::store<Order::relaxed>(relay + threadIdx.x, data | uint64_t(number) << 32);
            }
            if (threadIdx.x == 0) command.number = number;
        }
        __syncthreads();
        last = command.number;
        if (last == END) break;
        const uint32_t blocks = command.blocks(), all = blocks + command.way_blocks();
        bool is_done = blockIdx.x < all;
        if (blockIdx.x < blocks) {
            with_kind(command.kind(), command.how(), [&](auto number, auto how) {
                const auto source = [&](uint32_t s) { return command.at(s); };
                const auto target = [&](uint32_t t) { return command.at(command.sources() + t); };
                const uint64_t thread = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
                move<decltype(number), decltype(how)::value>(source, command.sources(), target, command.targets(),
                                                             command.bytes(), thread, uint64_t(blocks) * blockDim.x);
            });
        } else if (blockIdx.x < all) {
            // If not, the host waits for this block in vain, and says so.
            is_done = through_host(command, blockIdx.x - blocks, timeout_ns);
        }
        __syncthreads();
        if (threadIdx.x == 0 && is_done) {
            fabric::detail::fence_acq_rel();
            fabric::detail::store<Order::relaxed>(&mailbox->done[blockIdx.x].number, uint64_t(last));
        }
    }
    // Whatever the host writes from here on is for the next kernel.
    if (is_leader && threadIdx.x == 0) fabric::detail::store<Order::release>(&mailbox->ended, ended);
}

}  // namespace

cudaError_t load_resident() {
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, resident_kernel);
}

}  // namespace exec
}  // namespace tandem

extern "C" int32_t tandem_exec_resident(tandem_exec_mailbox* mailbox, uint8_t* scratch, uint32_t last, uint64_t ended,
                                        uint64_t linger_ns, uint64_t timeout_ns, tandem_stream stream) {
    const cudaError_t cleared = cudaMemsetAsync(scratch, 0, TANDEM_EXEC_COMMAND_WORDS * sizeof(uint64_t), stream);
    if (cleared != cudaSuccess) {
        (void)cudaGetLastError();
        return int32_t(cleared);
    }
    tandem::exec::resident_kernel<<<TANDEM_EXEC_RESIDENT_BLOCKS, tandem::exec::THREADS, 0, stream>>>(
        mailbox, reinterpret_cast<uint64_t*>(scratch), last, ended, linger_ns, timeout_ns);
    return int32_t(cudaGetLastError());
}
