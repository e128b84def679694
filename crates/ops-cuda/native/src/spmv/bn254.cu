// Sparse products over the scalar field of BN254.
#include "spmv.cuh"

int32_t tandem_spmv_bn254(const tandem_spmv_args* args, tandem_stream stream) {
    return tandem::spmv::spmv<tandem::Bn254Fr>(args, stream);
}
