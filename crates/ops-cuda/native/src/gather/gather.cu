// Elements picked by a map of indices. A thread moves 16 bytes of an element, or 4 where elements are no multiple of 16.
#include "tandem_ops.h"

#include <cuda_runtime.h>

namespace tandem {
namespace gather {

constexpr uint32_t BLOCK = 256;

/// Part number `part` of to[i] becomes that of from[map[i]], for a part of Unit's size.
template <class Unit>
__global__ void __launch_bounds__(BLOCK)
    gather_kernel(const Unit* from, Unit* to, const uint32_t* map, uint64_t n, uint32_t parts) {
    const uint64_t thread = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;
    const uint64_t i = thread / parts;
    if (i >= n) return;
    const uint32_t part = uint32_t(thread % parts);
    to[thread] = from[uint64_t(map[i]) * parts + part];
}

template <class Unit> int32_t launch(const tandem_gather_args& args, tandem_stream stream) {
    const uint32_t parts = args.element_bytes / sizeof(Unit);
    // Indices are below 2^32, and so a product of one and `parts` is below 2^64.
    if (args.n > UINT64_MAX / args.element_bytes) return TANDEM_INVALID;
    const uint64_t blocks = (args.n * parts - 1) / BLOCK + 1;
    if (blocks > 0x7fffffff) return TANDEM_INVALID;
    gather_kernel<Unit><<<uint32_t(blocks), BLOCK, 0, stream>>>(
        reinterpret_cast<const Unit*>(args.from), reinterpret_cast<Unit*>(args.to), args.map, args.n, parts);
    return int32_t(cudaGetLastError());
}

}  // namespace gather
}  // namespace tandem

int32_t tandem_gather(const tandem_gather_args* args, tandem_stream stream) {
    if (args->n == 0) return TANDEM_OK;
    if (!args->from || !args->to || !args->map || args->element_bytes == 0) return TANDEM_INVALID;
    const uintptr_t bits = reinterpret_cast<uintptr_t>(args->from) | reinterpret_cast<uintptr_t>(args->to);
    if (args->element_bytes % 16 == 0 && bits % 16 == 0) return tandem::gather::launch<uint4>(*args, stream);
    if (args->element_bytes % 4 == 0 && bits % 4 == 0) return tandem::gather::launch<uint32_t>(*args, stream);
    return TANDEM_INVALID;
}
