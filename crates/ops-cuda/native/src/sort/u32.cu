#include "by_cub.cuh"

using namespace tandem::sort;

extern "C" int32_t tandem_sort_u32_room(const tandem_sort_args* args, size_t* bytes) {
    return room<uint32_t, NoValue>(args, bytes);
}

extern "C" int32_t tandem_sort_u32(const tandem_sort_args* args, tandem_stream stream) {
    return launch<uint32_t, NoValue>(args, stream);
}
