// Transforms of points of G1 of BN254.
#include "point_ntt.cuh"

int32_t tandem_point_ntt_bn254_scratch(const tandem_point_ntt_args* args, size_t* bytes) {
    return tandem::point_ntt::scratch<tandem::Bn254G1>(args, bytes);
}

int32_t tandem_point_ntt_bn254(const tandem_point_ntt_args* args, void* scratch, size_t scratch_bytes,
                               tandem_stream stream) {
    return tandem::point_ntt::launch<tandem::Bn254G1>(args, scratch, scratch_bytes, stream);
}
