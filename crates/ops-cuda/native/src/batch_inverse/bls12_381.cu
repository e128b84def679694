// Inverses in the scalar field of BLS12-381.
#include "batch_inverse.cuh"

int32_t tandem_batch_inverse_bls12_381_scratch(const tandem_batch_inverse_args* args, size_t* bytes) {
    return tandem::batch_inverse::scratch<tandem::Fp<tandem::Bls12381Fr>>(args, bytes);
}

int32_t tandem_batch_inverse_bls12_381(const tandem_batch_inverse_args* args, void* scratch, size_t scratch_bytes,
                                       tandem_stream stream) {
    return tandem::batch_inverse::launch<tandem::Fp<tandem::Bls12381Fr>>(args, scratch, scratch_bytes, stream);
}
