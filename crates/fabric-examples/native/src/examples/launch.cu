// The examples as kernels.
#include "shift.cuh"
#include "squares.cuh"
#include "stencil.cuh"
#include "tandem_fabric_examples.h"

using namespace tandem;

namespace {

constexpr uint32_t THREADS = 256;
constexpr uint64_t MAX_BLOCKS = 1024;

__global__ void shift_kernel(const __grid_constant__ tandem_team team, int32_t* slot) { examples::shift(team, slot); }

__global__ void stencil_threads_kernel(const __grid_constant__ tandem_team team,
                                       const __grid_constant__ tandem_example_stencil_args args) {
    examples::stencil_by_threads(team, {args.columns, args.rows}, reinterpret_cast<float*>(args.b),
                                 reinterpret_cast<const float*>(args.a),
                                 uint64_t(blockIdx.x) * blockDim.x + threadIdx.x, uint64_t(gridDim.x) * blockDim.x);
}

__global__ void stencil_blocks_kernel(const __grid_constant__ tandem_team team,
                                      const __grid_constant__ tandem_example_stencil_args args) {
    examples::stencil_by_blocks(team, {args.columns, args.rows}, reinterpret_cast<float*>(args.b),
                                reinterpret_cast<const float*>(args.a), blockIdx.x, gridDim.x, fabric::Block());
}

__global__ void stencil_loop_kernel(const __grid_constant__ tandem_team team,
                                    const __grid_constant__ tandem_example_stencil_args args) {
    examples::stencil_loop(team, {args.columns, args.rows}, reinterpret_cast<float*>(args.a),
                           reinterpret_cast<float*>(args.b), args.steps, blockIdx.x, gridDim.x, fabric::Block(),
                           [&] { return fabric::barrier_grid(team); });
}

fabric::GlobalArray<uint64_t> array_of(const tandem_team& team, const tandem_array& array) {
    return fabric::GlobalArray<uint64_t>(team, reinterpret_cast<uint64_t*>(array.part), array.length, array.block);
}

uint32_t blocks_for(uint64_t count) { return uint32_t(count < MAX_BLOCKS ? count : MAX_BLOCKS); }

}  // namespace

extern "C" int32_t tandem_example_shift(const tandem_team* team, uint64_t slot, tandem_stream stream) {
    shift_kernel<<<1, 1, 0, stream>>>(*team, reinterpret_cast<int32_t*>(slot));
    return int32_t(cudaGetLastError());
}

extern "C" int32_t tandem_example_stencil(const tandem_team* team, const tandem_example_stencil_args* args,
                                          int32_t by_blocks, tandem_stream stream) {
    const uint64_t points = args->rows * args->columns;
    if (points == 0) return TANDEM_OK;
    if (by_blocks != 0) {
        stencil_blocks_kernel<<<blocks_for(args->rows), THREADS, 0, stream>>>(*team, *args);
    } else {
        stencil_threads_kernel<<<blocks_for((points + THREADS - 1) / THREADS), THREADS, 0, stream>>>(*team, *args);
    }
    return int32_t(cudaGetLastError());
}

extern "C" int32_t tandem_example_stencil_loop(tandem_kernel* kernel) {
    *kernel = reinterpret_cast<tandem_kernel>(stencil_loop_kernel);
    return TANDEM_OK;
}

extern "C" int32_t tandem_example_squares(const tandem_team* team, const tandem_array* array, tandem_stream stream) {
    return fabric::forall(array_of(*team, *array), stream, examples::Square());
}

extern "C" int32_t tandem_example_reverse(const tandem_team* team, const tandem_array* to, const tandem_array* from,
                                          tandem_stream stream) {
    return fabric::forall(array_of(*team, *to), stream, examples::Reverse{array_of(*team, *from)});
}
