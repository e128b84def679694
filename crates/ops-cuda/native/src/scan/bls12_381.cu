// Scans over the scalar field of BLS12-381.
#include "scan.cuh"

int32_t tandem_scan_totals_bls12_381(const tandem_scan_args* args, tandem_stream stream) {
    return tandem::scan::launch<tandem::Fp<tandem::Bls12381Fr>, true>(args, stream);
}

int32_t tandem_scan_apply_bls12_381(const tandem_scan_args* args, tandem_stream stream) {
    return tandem::scan::launch<tandem::Fp<tandem::Bls12381Fr>, false>(args, stream);
}
