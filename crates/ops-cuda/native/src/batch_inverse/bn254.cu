// Inverses in the scalar field of BN254.
#include "batch_inverse.cuh"

int32_t tandem_batch_inverse_bn254_scratch(const tandem_batch_inverse_args* args, size_t* bytes) {
    return tandem::batch_inverse::scratch<tandem::Fp<tandem::Bn254Fr>>(args, bytes);
}

int32_t tandem_batch_inverse_bn254(const tandem_batch_inverse_args* args, void* scratch, size_t scratch_bytes,
                                   tandem_stream stream) {
    return tandem::batch_inverse::launch<tandem::Fp<tandem::Bn254Fr>>(args, scratch, scratch_bytes, stream);
}
