// The structures and numbers of src/nvshmem.rs against NVSHMEM's own headers.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "device_host/nvshmem_types.h"
#include "device_host_transport/nvshmem_common_transport.h"
#include "device_host_transport/nvshmem_constants.h"

static_assert(sizeof(nvshmemx_uniqueid_v1) == 128, "UniqueId");
static_assert(offsetof(nvshmemx_uniqueid_v1, version) == 0, "UniqueId::version");
static_assert(offsetof(nvshmemx_uniqueid_v1, internal) == 4, "UniqueId::internal");
static_assert(sizeof(nvshmemx_uniqueid_args_v1) == 24, "UniqueIdArgs");
static_assert(offsetof(nvshmemx_uniqueid_args_v1, version) == 0, "UniqueIdArgs::version");
static_assert(offsetof(nvshmemx_uniqueid_args_v1, id) == 8, "UniqueIdArgs::id");
static_assert(offsetof(nvshmemx_uniqueid_args_v1, myrank) == 16, "UniqueIdArgs::rank");
static_assert(offsetof(nvshmemx_uniqueid_args_v1, nranks) == 20, "UniqueIdArgs::ranks");
static_assert(sizeof(nvshmemx_init_args_v1) == 128, "InitArgs");
static_assert(offsetof(nvshmemx_init_args_v1, version) == 0, "InitArgs::version");
static_assert(offsetof(nvshmemx_init_args_v1, uid_args) == 8, "InitArgs::id_args");
static_assert(offsetof(nvshmemx_init_args_v1, content) == 32, "InitArgs::content");
static_assert(sizeof(nvshmemx_init_attr_v1) == 144, "InitAttr");
static_assert(offsetof(nvshmemx_init_attr_v1, version) == 0, "InitAttr::version");
static_assert(offsetof(nvshmemx_init_attr_v1, mpi_comm) == 8, "InitAttr::mpi_comm");
static_assert(offsetof(nvshmemx_init_attr_v1, args) == 16, "InitAttr::args");

static_assert(NVSHMEM_STATUS_IS_INITIALIZED == 2 && NVSHMEM_STATUS_LIMITED_MPG == 3 && NVSHMEM_STATUS_FULL_MPG == 4,
              "statuses");
static_assert(NVSHMEM_CMP_GE == 5, "CMP_GE");
static_assert(NVSHMEM_SIGNAL_SET == 9 && NVSHMEM_SIGNAL_ADD == 10, "signals");
