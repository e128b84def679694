// Scans over the scalar field of BN254.
#include "scan.cuh"

int32_t tandem_scan_totals_bn254(const tandem_scan_args* args, tandem_stream stream) {
    return tandem::scan::launch<tandem::Fp<tandem::Bn254Fr>, true>(args, stream);
}

int32_t tandem_scan_apply_bn254(const tandem_scan_args* args, tandem_stream stream) {
    return tandem::scan::launch<tandem::Fp<tandem::Bn254Fr>, false>(args, stream);
}
