// Sparse products over the scalar field of BLS12-381.
#include "spmv.cuh"

int32_t tandem_spmv_bls12_381(const tandem_spmv_args* args, tandem_stream stream) {
    return tandem::spmv::spmv<tandem::Bls12381Fr>(args, stream);
}
