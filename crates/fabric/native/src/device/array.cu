// Assignment of global arrays whose distributions cut each other into short pieces.
#include "tandem/fabric.cuh"

using namespace tandem::fabric;

namespace {

constexpr uint32_t THREADS = 256;
constexpr uint64_t MAX_BLOCKS = 1056;

template <class T>
__global__ void assign_kernel(const __grid_constant__ GlobalArray<T> to, const __grid_constant__ GlobalArray<T> from) {
    assign_local(to, from, uint64_t(blockIdx.x) * blockDim.x + threadIdx.x, uint64_t(gridDim.x) * blockDim.x);
}

/// Elements as runs of words that are as wide as all lengths and addresses allow: the distributions of the words are
/// the same with blocks so much longer.
template <class Word> int32_t assign(const tandem_team& team, const tandem_array& to, const tandem_array& from,
                                     uint64_t element, tandem_stream stream) {
    const uint64_t words = element / sizeof(Word);
    const GlobalArray<Word> target(team, reinterpret_cast<Word*>(to.part), to.length * words, to.block * words);
    const GlobalArray<Word> source(team, reinterpret_cast<Word*>(from.part), from.length * words, from.block * words);
    const uint64_t here = target.local_length();
    if (here == 0) return TANDEM_OK;
    const uint64_t blocks = (here + THREADS - 1) / THREADS;
    assign_kernel<<<uint32_t(blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS), THREADS, 0, stream>>>(target, source);
    return int32_t(cudaGetLastError());
}

}  // namespace

extern "C" int32_t tandem_array_assign(const tandem_team* team, const tandem_array* to, const tandem_array* from,
                                       uint64_t element, tandem_stream stream) {
    if (team == nullptr || to == nullptr || from == nullptr || element == 0 || to->length != from->length ||
        to->block == 0 || from->block == 0) {
        return TANDEM_INVALID;
    }
    switch ((to->part | from->part | element) & 15) {
        case 0: return assign<uint4>(*team, *to, *from, element, stream);
        case 8: return assign<uint64_t>(*team, *to, *from, element, stream);
        case 4:
        case 12: return assign<uint32_t>(*team, *to, *from, element, stream);
        default:
            return element % 2 == 0 && (to->part | from->part) % 2 == 0
                       ? assign<uint16_t>(*team, *to, *from, element, stream)
                       : assign<uint8_t>(*team, *to, *from, element, stream);
    }
}
