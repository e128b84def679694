#include "poseidon.cuh"

extern "C" int32_t tandem_poseidon_bn254(const tandem_poseidon_args* args, tandem_stream stream) {
    return tandem::poseidon::launch<tandem::Bn254Fr>(args, stream);
}
