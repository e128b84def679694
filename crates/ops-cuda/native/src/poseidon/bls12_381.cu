#include "poseidon.cuh"

extern "C" int32_t tandem_poseidon_bls12_381(const tandem_poseidon_args* args, tandem_stream stream) {
    return tandem::poseidon::launch<tandem::Bls12381Fr>(args, stream);
}
