#include "plonk_rows.cuh"

extern "C" int32_t tandem_gate_rows_bn254(const tandem_gate_rows_args* args, tandem_stream stream) {
    return tandem::gate_rows_launch<tandem::Fp<tandem::Bn254Fr>>(args, stream);
}

extern "C" int32_t tandem_permuted_rows_bn254(const tandem_permuted_rows_args* args, tandem_stream stream) {
    return tandem::permuted_rows_launch<tandem::Fp<tandem::Bn254Fr>>(args, stream);
}
