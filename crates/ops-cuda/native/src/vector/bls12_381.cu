#include "vector.cuh"

extern "C" int32_t tandem_vector_bls12_381(const tandem_vector_args* args, tandem_stream stream) {
    return tandem::vector_launch<tandem::Fp<tandem::Bls12381Fr>>(args, stream);
}

extern "C" int32_t tandem_combined_bls12_381(const tandem_combined_args* args, tandem_stream stream) {
    return tandem::combined_launch<tandem::Fp<tandem::Bls12381Fr>>(args, stream);
}
