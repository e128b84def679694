#include "reduce.cuh"

extern "C" int32_t tandem_reduce_bn254_scratch(const tandem_reduce_args* args, size_t* bytes) {
    return tandem::reduce::scratch<tandem::Fp<tandem::Bn254Fr>>(args, bytes);
}

extern "C" int32_t tandem_reduce_bn254(const tandem_reduce_args* args, void* scratch, size_t scratch_bytes,
                                       tandem_stream stream) {
    return tandem::reduce::launch_any<tandem::Fp<tandem::Bn254Fr>>(args, scratch, scratch_bytes, stream);
}

extern "C" int32_t tandem_reduce_bls12_381_scratch(const tandem_reduce_args* args, size_t* bytes) {
    return tandem::reduce::scratch<tandem::Fp<tandem::Bls12381Fr>>(args, bytes);
}

extern "C" int32_t tandem_reduce_bls12_381(const tandem_reduce_args* args, void* scratch, size_t scratch_bytes,
                                           tandem_stream stream) {
    return tandem::reduce::launch_any<tandem::Fp<tandem::Bls12381Fr>>(args, scratch, scratch_bytes, stream);
}
