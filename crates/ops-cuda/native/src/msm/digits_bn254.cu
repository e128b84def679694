// Digits of scalars of BN254's scalar field.
#include "digits.cuh"

int32_t tandem_msm_digits_bn254_scratch(const tandem_msm_digits_args* args, size_t* bytes) {
    return tandem::msm::digits_scratch(args, bytes);
}
int32_t tandem_msm_digits_bn254(const tandem_msm_digits_args* args, void* scratch, size_t scratch_bytes,
                                tandem_stream stream) {
    return tandem::msm::digits<tandem::Bn254Fr>(args, scratch, scratch_bytes, stream);
}
