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

struct Command {
    uint32_t halves[WORDS];
    uint32_t number;
    __device__ uint64_t word(uint32_t i) const { return halves[2 * i] | uint64_t(halves[2 * i + 1]) << 32; }
    __device__ uint64_t bytes() const { return word(0); }
    __device__ uint32_t sources() const { return halves[2] & 0xff; }
    __device__ uint32_t targets() const { return halves[2] >> 8 & 0xff; }
    __device__ int32_t kind() const { return int32_t(halves[2] >> 16 & 0xff); }
    __device__ int32_t how() const { return int32_t(halves[2] >> 24); }
    __device__ uint32_t blocks() const { return halves[3]; }
    __device__ uint64_t at(uint32_t i) const { return word(2 + i); }
};

/// The first warp looks for a command other than `last`: lane i reads word i, and all must have one number. 0 if there is none yet.
__device__ __forceinline__ uint32_t look(const uint64_t* words, uint32_t last, Command& command) {
    const uint64_t word = fabric::detail::load<fabric::Order::relaxed>(words + threadIdx.x);
    const uint32_t number = __shfl_sync(0xffffffffu, uint32_t(word >> 32), 0);
    if (!__all_sync(0xffffffffu, uint32_t(word >> 32) == number) || number == last || number == 0) return 0;
    command.halves[threadIdx.x] = uint32_t(word);
    return number;
}

__global__ void __launch_bounds__(THREADS)
    resident_kernel(tandem_exec_mailbox* mailbox, uint64_t* relay, uint32_t last, uint64_t ended, uint64_t linger_ns) {
    using fabric::Order;
    __shared__ Command command;
    const bool is_leader = blockIdx.x == 0;
    for (;;) {
        if (threadIdx.x < 32) {
            // The leader reads from the host, the others what it passes on: 64 blocks that all read from the host were tried, and
            // kept each other waiting for 200 us.
            // All threads of the block have read what the command before said: they have met since.
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
            if (is_leader && (number == END || command.blocks() > 1)) {
                const uint64_t data = number == END ? 0 : command.halves[threadIdx.x];
                fabric::detail::store<Order::relaxed>(relay + threadIdx.x, data | uint64_t(number) << 32);
            }
            if (threadIdx.x == 0) command.number = number;
        }
        __syncthreads();
        last = command.number;
        if (last == END) break;
        // What the host and others wrote before the command is visible to those who have met the first warp.
        if (threadIdx.x == 0) fabric::detail::fence_acq_rel();
        __syncthreads();
        const uint32_t blocks = command.blocks();
        if (blockIdx.x < blocks) {
            with_kind(command.kind(), command.how(), [&](auto number, auto how) {
                const auto source = [&](uint32_t s) { return command.at(s); };
                const auto target = [&](uint32_t t) { return command.at(command.sources() + t); };
                const uint64_t thread = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
                move<decltype(number), decltype(how)::value>(source, command.sources(), target, command.targets(),
                                                             command.bytes(), thread, uint64_t(blocks) * blockDim.x);
            });
        }
        __syncthreads();
        if (threadIdx.x == 0 && blockIdx.x < blocks) {
            fabric::detail::fence_acq_rel();
            fabric::detail::store<Order::relaxed>(mailbox->done + blockIdx.x, uint64_t(last));
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
                                        uint64_t linger_ns, tandem_stream stream) {
    const cudaError_t cleared = cudaMemsetAsync(scratch, 0, TANDEM_EXEC_COMMAND_WORDS * sizeof(uint64_t), stream);
    if (cleared != cudaSuccess) {
        (void)cudaGetLastError();
        return int32_t(cleared);
    }
    tandem::exec::resident_kernel<<<TANDEM_EXEC_RESIDENT_BLOCKS, tandem::exec::THREADS, 0, stream>>>(
        mailbox, reinterpret_cast<uint64_t*>(scratch), last, ended, linger_ns);
    return int32_t(cudaGetLastError());
}
