// The persistent kernel: it stays for a while and does what the host writes into a mailbox. A launch costs more than a small message.
#include <cuda_runtime.h>

#include "combine.cuh"
#include "load.hpp"
#include "tandem/fabric.cuh"

namespace tandem {
namespace exec {
namespace {

constexpr uint32_t WORDS = TANDEM_EXEC_COMMAND_WORDS;
constexpr uint32_t END = TANDEM_EXEC_COMMAND_END;
constexpr uint32_t POLLERS = TANDEM_EXEC_POLLERS;
/// How long a read of host memory takes, in nanoseconds.
constexpr uint64_t POLL_NS = 930;

/// Bytes of a chunk on the way through host memory.
constexpr uint64_t CHUNK = 8 << 10;

struct Command {
    uint32_t halves[WORDS];
    uint32_t number;
    __device__ uint64_t word(uint32_t i) const { return halves[2 * i] | uint64_t(halves[2 * i + 1]) << 32; }
    __device__ uint64_t bytes() const { return word(0); }
    __device__ uint32_t sources() const { return halves[2] & 0xff; }
    __device__ uint32_t targets() const { return halves[2] >> 8 & 0xff; }
    __device__ int32_t kind() const { return int32_t(halves[2] >> 16 & 0xff); }
    __device__ int32_t op() const { return int32_t(halves[2] >> 24); }
    __device__ uint32_t blocks() const { return halves[3] & 0xffff; }
    /// Blocks after these, for what goes through host memory.
    __device__ uint32_t staged_blocks() const { return halves[3] >> 16 & 0xff; }
    __device__ uint32_t form() const { return halves[3] >> 24; }
    __device__ bool is_staged() const { return form() != TANDEM_EXEC_PLAIN && form() <= TANDEM_EXEC_STAGED_RECEIVE; }
    __device__ uint64_t staged_bytes() const { return halves[4]; }
    __device__ uint64_t turn() const { return halves[5]; }
    __device__ uint64_t ring() const { return word(3); }
    __device__ uint64_t flags() const { return word(4); }
    /// Of a moved or a dealt one.
    __device__ uint64_t step() const { return word(2); }
    /// The word with the first address.
    __device__ uint32_t addresses() const { return form() == TANDEM_EXEC_PLAIN ? 2 : is_staged() ? 5 : 3; }
    __device__ uint64_t at(uint32_t i) const { return word(addresses() + i); }
};

/// A block's part of what goes over the links.
__device__ __forceinline__ void do_part(const Command& command, uint32_t block, uint32_t blocks) {
    const bool is_dealt = command.form() == TANDEM_EXEC_DEALT, is_moved = command.form() == TANDEM_EXEC_MOVED;
    // Of what is dealt, blocks take targets in turns.
    const uint32_t piece = is_dealt ? block % command.targets() : 0, each = is_dealt ? command.targets() : 1;
    const uint32_t sources = command.sources(), targets = is_dealt ? 1 : command.targets();
    const uint32_t from = command.addresses(), to = from + (is_moved ? 0 : sources + piece);
    const uint64_t ahead = is_dealt ? piece * command.step() : 0, moved = is_moved ? command.step() : 0;
    const auto source = [&](uint32_t s) { return command.word(from + s) + ahead; };
    const auto target = [&](uint32_t t) { return command.word(to + t) + moved; };
    const uint64_t thread = uint64_t(block / each) * blockDim.x + threadIdx.x;
    const uint64_t threads = uint64_t(blocks / each) * blockDim.x;
    with_kind(command.kind(), command.op(), [&](auto number, auto op) {
        move<decltype(number), decltype(op)::value>(source, sources, target, targets, command.bytes(), thread, threads);
    });
}

/// A warp polls for a command other than `last`: its thread i reads word i, and all must have one number. 0 if there is none yet.
/// Acquiring here costs less than a fence afterwards, which takes 0.6 us.
__device__ __forceinline__ uint32_t poll(const uint64_t* words, uint32_t last, uint32_t& half) {
    const uint64_t word = fabric::detail::load<fabric::Order::acquire>(words + threadIdx.x % 32);
    const uint32_t number = __shfl_sync(0xffffffffu, uint32_t(word >> 32), 0);
    if (!__all_sync(0xffffffffu, uint32_t(word >> 32) == number) || number == last || number == 0) return 0;
    half = uint32_t(word);
    return number;
}

__device__ __forceinline__ void pause(uint64_t ns) {
    const uint64_t begun = fabric::detail::now_ns();
    while (fabric::detail::now_ns() - begun < ns) {}
}

/// The first block reads commands from the host and passes them on: blocks that all read from the host keep each other waiting, for 70 us
/// where there are 32. A poll takes long, so some warps poll in turns, each a copy of its own, as reads of one place wait for each other. None
/// polls while others work: with that, calls one after the other were faster (docs/design/fabric.md).
__device__ void relay_commands(tandem_exec_mailbox* mailbox, uint64_t* relay, uint32_t last, uint64_t ended,
                               uint64_t linger_ns, uint64_t timeout_ns) {
    using fabric::Order;
    /// The last command that was passed on, and how many blocks all of them gave something to do.
    __shared__ uint32_t newest;
    __shared__ uint64_t awaited;
    if (threadIdx.x == 0) {
        newest = last;
        awaited = 0;
    }
    __syncthreads();
    const uint32_t poller = threadIdx.x / 32, warp_lane = threadIdx.x % 32;
    if (poller >= POLLERS) return;
    const uint64_t* count = relay + WORDS;
    pause(poller * POLL_NS / POLLERS);
    uint64_t begun = fabric::detail::now_ns();
    for (;;) {
        uint32_t half = 0;
        const uint32_t number = poll(mailbox->command + poller * WORDS, last, half);
        const bool is_idle = number == 0 && poller == 0 && fabric::detail::now_ns() - begun > linger_ns;
        if (number == 0 && __shfl_sync(0xffffffffu, is_idle, 0) == 0) {
            if (__shfl_sync(0xffffffffu, *reinterpret_cast<volatile uint32_t*>(&newest), 0) == END) return;
            continue;
        }
        // A command that gives nobody anything to do ends the kernel.
        const uint32_t blocks = __shfl_sync(0xffffffffu, half, 3);
        const uint32_t all = (blocks & 0xffff) + (blocks >> 16 & 0xff);
        const uint32_t passed = number == 0 || all == 0 ? END : number;
        // Only who has seen the one before passes it on: who read it late is not taken for new.
        bool is_first = false;
        if (warp_lane == 0) {
            is_first = atomicCAS(&newest, last, passed) == last;
            if (is_first) awaited += all;
        }
        is_first = __shfl_sync(0xffffffffu, is_first, 0);
        if (is_first) {
            // What was there before the command is visible at the system's scope already; who reads this acquires.
            fabric::detail::store<Order::relaxed>(relay + warp_lane, half | uint64_t(passed) << 32);
            if (passed == END) {
                // Whatever the host writes from here on is for the next kernel.
                __syncwarp();
                if (warp_lane == 0) fabric::detail::store<Order::release>(&mailbox->ended, ended);
                return;
            }
        }
        if (number != 0) last = number;
        begun = fabric::detail::now_ns();
        while (fabric::detail::load<Order::relaxed>(count) < *reinterpret_cast<volatile uint64_t*>(&awaited) &&
               fabric::detail::now_ns() - begun < timeout_ns) {}
        pause(poller * POLL_NS / POLLERS);
        begun = fabric::detail::now_ns();
    }
}

/// The part of a copy that is staged in host memory: its blocks take chunks in turns. Who sends tells the receiver, in
/// its memory, how many chunks are there. False where nothing came for too long.
__device__ bool host_staged_copy(const Command& command, uint32_t block, uint64_t timeout_ns) {
    using fabric::Order;
    uint64_t* flag = reinterpret_cast<uint64_t*>(command.flags()) + block;
    const bool is_sender = command.form() != TANDEM_EXEC_STAGED_RECEIVE;
    const uint64_t all = command.staged_bytes(), first = command.bytes();
    const uint64_t step = command.staged_blocks() * CHUNK;
    uint64_t number = command.turn() << 32;
    for (uint64_t begin = block * CHUNK; begin < all; begin += step) {
        number++;
        const uint64_t bytes = all - begin < CHUNK ? all - begin : CHUNK;
        if (is_sender) {
            // Behind what goes over the links; the PE's own target, if it has one, is the first.
            const auto source = [&](uint32_t) { return command.at(0) + first + begin; };
            const auto target = [&](uint32_t t) {
                return t == 0 ? command.ring() + begin : command.at(1) + first + begin;
            };
            const uint32_t targets = command.form() == TANDEM_EXEC_STAGED_SEND_AND_KEEP ? 2 : 1;
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

__global__ void __launch_bounds__(THREADS) resident_kernel(tandem_exec_mailbox* mailbox, uint64_t* relay, uint32_t last,
                                                           uint64_t ended, uint64_t linger_ns, uint64_t timeout_ns) {
    using fabric::Order;
    if (blockIdx.x == 0) return relay_commands(mailbox, relay, last, ended, linger_ns, timeout_ns);
    __shared__ Command command;
    const uint32_t me = blockIdx.x - 1;
    for (;;) {
        if (threadIdx.x < 32) {
            // All threads of the block have read what the command before said: they have met since.
            uint32_t number = 0, half = 0;
            while (number == 0) number = poll(relay, last, half);
            command.halves[threadIdx.x] = half;
            if (threadIdx.x == 0) command.number = number;
        }
        __syncthreads();
        last = command.number;
        if (last == END) return;
        const uint64_t begun = fabric::detail::now_ns();
        const uint32_t blocks = command.blocks(), all = blocks + command.staged_blocks();
        bool is_done = me < all;
        if (me < blocks) {
            do_part(command, me, blocks);
        } else if (me < all) {
            // If not, the host waits for this block in vain, and says so.
            is_done = host_staged_copy(command, me - blocks, timeout_ns);
        }
        __syncthreads();
        if (threadIdx.x == 0 && is_done) {
            fabric::detail::fence_acq_rel();
            // What the host sees is later: it waits for all that is on its way to host memory.
            const uint64_t took = fabric::detail::now_ns() - begun;
            fabric::detail::store<Order::relaxed>(&mailbox->done[me].number,
                                                  last | (took < UINT32_MAX ? took : UINT32_MAX) << 32);
        }
        if (threadIdx.x == 0 && me < all) {
            fabric::detail::change<fabric::detail::Add, Order::relaxed>(relay + WORDS, uint64_t(1));
        }
    }
}

}  // namespace

cudaError_t load_resident(int* blocks) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, resident_kernel, THREADS, 0);
}

}  // namespace exec
}  // namespace tandem

extern "C" int32_t tandem_exec_resident(tandem_exec_mailbox* mailbox, uint8_t* scratch, uint32_t last, uint64_t ended,
                                        uint64_t linger_ns, uint64_t timeout_ns, tandem_stream stream) {
    const cudaError_t cleared = cudaMemsetAsync(scratch, 0, TANDEM_EXEC_SCRATCH_WORDS * sizeof(uint64_t), stream);
    if (cleared != cudaSuccess) {
        (void)cudaGetLastError();
        return int32_t(cleared);
    }
    tandem::exec::resident_kernel<<<TANDEM_EXEC_RESIDENT_BLOCKS + 1, tandem::exec::THREADS, 0, stream>>>(
        mailbox, reinterpret_cast<uint64_t*>(scratch), last, ended, linger_ns, timeout_ns);
    return int32_t(cudaGetLastError());
}
