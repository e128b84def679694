// Digits of scalars of BLS12-381's scalar field.
#include "digits.cuh"

int32_t tandem_msm_digits_bls12_381_scratch(const tandem_msm_digits_args* args, size_t* bytes) {
    return tandem::msm::digits_scratch(args, bytes);
}
int32_t tandem_msm_digits_bls12_381(const tandem_msm_digits_args* args, void* scratch, size_t scratch_bytes,
                                    tandem_stream stream) {
    return tandem::msm::digits<tandem::Bls12381Fr>(args, scratch, scratch_bytes, stream);
}
