#include "by_cub.cuh"

using namespace tandem::sort;

extern "C" int32_t tandem_sort_u32_pairs_room(const tandem_sort_args* args, size_t* bytes) {
    return room<uint32_t, uint32_t>(args, bytes);
}

extern "C" int32_t tandem_sort_u32_pairs(const tandem_sort_args* args, tandem_stream stream) {
    return launch<uint32_t, uint32_t>(args, stream);
}
