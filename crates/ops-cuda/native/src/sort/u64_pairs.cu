#include "launch.cuh"

using namespace tandem::sort;

extern "C" int32_t tandem_sort_u64_pairs_room(const tandem_sort_args* args, size_t* bytes) {
    return room<uint64_t, uint64_t>(args, bytes);
}

extern "C" int32_t tandem_sort_u64_pairs(const tandem_sort_args* args, tandem_stream stream) {
    return launch<uint64_t, uint64_t>(args, stream);
}
