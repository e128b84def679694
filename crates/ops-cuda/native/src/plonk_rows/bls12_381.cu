// Rows of PLONK over the scalar field of BLS12-381.
#include "plonk_rows.cuh"

int32_t tandem_gate_rows_bls12_381(const tandem_gate_rows_args* args, tandem_stream stream) {
    return tandem::plonk_rows::launch<tandem::Fp<tandem::Bls12381Fr>>(args, stream);
}

int32_t tandem_permuted_rows_bls12_381(const tandem_permuted_rows_args* args, tandem_stream stream) {
    return tandem::plonk_rows::launch<tandem::Fp<tandem::Bls12381Fr>>(args, stream);
}

int32_t tandem_quotient_rows_bls12_381(const tandem_quotient_rows_args* args, tandem_stream stream) {
    return tandem::plonk_rows::launch<tandem::Fp<tandem::Bls12381Fr>>(args, stream);
}
