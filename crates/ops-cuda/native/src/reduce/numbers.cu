#include "reduce.cuh"

extern "C" int32_t tandem_reduce_u32_scratch(const tandem_reduce_args* args, size_t* bytes) {
    return tandem::reduce::scratch<uint32_t>(args, bytes);
}

extern "C" int32_t tandem_reduce_u32(const tandem_reduce_args* args, void* scratch, size_t scratch_bytes,
                                     tandem_stream stream) {
    return tandem::reduce::launch_any<uint32_t>(args, scratch, scratch_bytes, stream);
}

extern "C" int32_t tandem_reduce_u64_scratch(const tandem_reduce_args* args, size_t* bytes) {
    return tandem::reduce::scratch<uint64_t>(args, bytes);
}

extern "C" int32_t tandem_reduce_u64(const tandem_reduce_args* args, void* scratch, size_t scratch_bytes,
                                     tandem_stream stream) {
    return tandem::reduce::launch_any<uint64_t>(args, scratch, scratch_bytes, stream);
}

extern "C" int32_t tandem_reduce_f32_scratch(const tandem_reduce_args* args, size_t* bytes) {
    return tandem::reduce::scratch<float>(args, bytes);
}

extern "C" int32_t tandem_reduce_f32(const tandem_reduce_args* args, void* scratch, size_t scratch_bytes,
                                     tandem_stream stream) {
    return tandem::reduce::launch_any<float>(args, scratch, scratch_bytes, stream);
}

extern "C" int32_t tandem_reduce_f64_scratch(const tandem_reduce_args* args, size_t* bytes) {
    return tandem::reduce::scratch<double>(args, bytes);
}

extern "C" int32_t tandem_reduce_f64(const tandem_reduce_args* args, void* scratch, size_t scratch_bytes,
                                     tandem_stream stream) {
    return tandem::reduce::launch_any<double>(args, scratch, scratch_bytes, stream);
}
