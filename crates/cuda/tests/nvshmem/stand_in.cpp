// Stands for NVSHMEM's host library as far as it is asked before it is started.
#include <cstddef>
#include <cstdint>

namespace {
struct Id {
    int version;
    unsigned char internal[124];
};
}  // namespace

extern "C" {
void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch) {
    *major = MAJOR;
    *minor = MINOR;
    *patch = 7;
}

int nvshmemx_get_uniqueid(Id* id) {
#if defined(FAILS)
    return id == nullptr ? 1 : 7;
#else
    if (id->version != (1 << 16) + int(sizeof(Id))) return 9;
    for (int i = 0; i < 124; i++) id->internal[i] = static_cast<unsigned char>(7 * i % 251);
    return 0;
#endif
}

// Called by nobody here.
void nvshmemx_set_attr_uniqueid_args() {}
void nvshmemx_hostlib_init_attr() {}
void nvshmemx_init_status() {}
void nvshmem_my_pe() {}
void nvshmem_n_pes() {}
void nvshmem_align() {}
void nvshmem_free() {}
void nvshmem_ptr() {}
void nvshmemx_putmem_on_stream() {}
void nvshmemx_getmem_on_stream() {}
void nvshmemx_signal_op_on_stream() {}
void nvshmemx_signal_wait_until_on_stream() {}
void nvshmemx_quiet_on_stream() {}
}
