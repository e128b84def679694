// The layout that src/ffi.rs asserts too, made by `cargo xtask bindgen`. Not to be edited.
#include "tandem_cuda.h"

static_assert(sizeof(tandem_cuda_properties) == 336, "size of tandem_cuda_properties");
static_assert(offsetof(tandem_cuda_properties, name) == 0, "tandem_cuda_properties.name");
static_assert(offsetof(tandem_cuda_properties, pci) == 256, "tandem_cuda_properties.pci");
static_assert(offsetof(tandem_cuda_properties, memory_bytes) == 288, "tandem_cuda_properties.memory_bytes");
static_assert(offsetof(tandem_cuda_properties, major) == 296, "tandem_cuda_properties.major");
static_assert(offsetof(tandem_cuda_properties, minor) == 300, "tandem_cuda_properties.minor");
static_assert(offsetof(tandem_cuda_properties, multiprocessors) == 304, "tandem_cuda_properties.multiprocessors");
static_assert(offsetof(tandem_cuda_properties, threads_per_multiprocessor) == 308, "tandem_cuda_properties.threads_per_multiprocessor");
static_assert(offsetof(tandem_cuda_properties, registers_per_multiprocessor) == 312, "tandem_cuda_properties.registers_per_multiprocessor");
static_assert(offsetof(tandem_cuda_properties, l2_bytes) == 316, "tandem_cuda_properties.l2_bytes");
static_assert(offsetof(tandem_cuda_properties, shared_per_multiprocessor) == 320, "tandem_cuda_properties.shared_per_multiprocessor");
static_assert(offsetof(tandem_cuda_properties, shared_per_block) == 324, "tandem_cuda_properties.shared_per_block");
static_assert(offsetof(tandem_cuda_properties, copy_engines) == 328, "tandem_cuda_properties.copy_engines");
static_assert(offsetof(tandem_cuda_properties, memory_pools) == 332, "tandem_cuda_properties.memory_pools");
