// Sumchecks over Goldilocks, with challenges of its quadratic extension.
#include "launch.cuh"

using Field = tandem::sumcheck::GoldilocksTables;

int32_t tandem_sumcheck_goldilocks_scratch(const tandem_sumcheck_args* args, size_t* bytes) {
    return tandem::sumcheck::scratch<Field>(args, bytes);
}

int32_t tandem_sumcheck_goldilocks(const tandem_sumcheck_args* args, void* scratch, size_t bytes,
                                   tandem_stream stream) {
    return tandem::sumcheck::launch<Field>(args, scratch, bytes, stream);
}
