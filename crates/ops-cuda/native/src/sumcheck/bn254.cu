// Sumchecks over the scalar field of BN254.
#include "launch.cuh"

using Field = tandem::sumcheck::Scalars<tandem::Bn254Fr>;

int32_t tandem_sumcheck_bn254_scratch(const tandem_sumcheck_args* args, size_t* bytes) {
    return tandem::sumcheck::scratch<Field>(args, bytes);
}

int32_t tandem_sumcheck_bn254(const tandem_sumcheck_args* args, void* scratch, size_t bytes, tandem_stream stream) {
    return tandem::sumcheck::launch<Field>(args, scratch, bytes, stream);
}
