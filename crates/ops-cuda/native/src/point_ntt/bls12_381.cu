// Transforms of points of G1 of BLS12-381.
#include "point_ntt.cuh"

int32_t tandem_point_ntt_bls12_381_scratch(const tandem_point_ntt_args* args, size_t* bytes) {
    return tandem::point_ntt::scratch<tandem::Bls12381G1>(args, bytes);
}

int32_t tandem_point_ntt_bls12_381(const tandem_point_ntt_args* args, void* scratch, size_t scratch_bytes,
                                   tandem_stream stream) {
    return tandem::point_ntt::launch<tandem::Bls12381G1>(args, scratch, scratch_bytes, stream);
}
