// Rows of PLONK over the scalar field of BN254.
#include "plonk_rows.cuh"

int32_t tandem_gate_rows_bn254(const tandem_gate_rows_args* args, tandem_stream stream) {
    return tandem::plonk_rows::launch<tandem::Fp<tandem::Bn254Fr>>(args, stream);
}

int32_t tandem_permuted_rows_bn254(const tandem_permuted_rows_args* args, tandem_stream stream) {
    return tandem::plonk_rows::launch<tandem::Fp<tandem::Bn254Fr>>(args, stream);
}

int32_t tandem_quotient_rows_bn254(const tandem_quotient_rows_args* args, tandem_stream stream) {
    return tandem::plonk_rows::launch<tandem::Fp<tandem::Bn254Fr>>(args, stream);
}
