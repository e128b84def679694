#include "vector.cuh"

extern "C" int32_t tandem_vector_bn254(const tandem_vector_args* args, tandem_stream stream) {
    return tandem::vector_launch<tandem::Fp<tandem::Bn254Fr>>(args, stream);
}

extern "C" int32_t tandem_combined_bn254(const tandem_combined_args* args, tandem_stream stream) {
    return tandem::combined_launch<tandem::Fp<tandem::Bn254Fr>>(args, stream);
}
