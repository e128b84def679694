#include "launch.cuh"

using namespace tandem::sort;

extern "C" int32_t tandem_sort_u64_room(const tandem_sort_args* args, size_t* bytes) {
    return room<uint64_t, NoValue>(args, bytes);
}

extern "C" int32_t tandem_sort_u64(const tandem_sort_args* args, tandem_stream stream) {
    return launch<uint64_t, NoValue>(args, stream);
}
