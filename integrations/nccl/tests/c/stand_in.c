// Stands in for libnccl.so.2 in tests. It moves no data: it writes down each call, one line to the file that STAND_IN_LOG names, so that a test
// knows what was handed on, by whom and in which order.
#include <nccl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ncclComm {
    int rank, count, device;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static __thread int depth;

static void note(const char* format, ...) {
    const char* name = getenv("STAND_IN_LOG");
    if (!name) return;
    pthread_mutex_lock(&mutex);
    FILE* file = fopen(name, "a");
    if (file) {
        va_list list;
        va_start(list, format);
        vfprintf(file, format, list);
        va_end(list);
        fputc('\n', file);
        fclose(file);
    }
    pthread_mutex_unlock(&mutex);
}

static ncclComm_t made(int rank, int count, int device) {
    ncclComm_t comm = malloc(sizeof *comm);
    comm->rank = rank, comm->count = count, comm->device = device;
    return comm;
}

ncclResult_t ncclGetVersion(int* version) { return *version = 22809, ncclSuccess; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    static int next;
    memset(id, 0x5a, sizeof *id);
    pthread_mutex_lock(&mutex);
    next++;
    memcpy(id->internal, &next, sizeof next);
    pthread_mutex_unlock(&mutex);
    return ncclSuccess;
}
// In a group the communicator is there at the group's end, as of NCCL's.
static __thread ncclComm_t* waiting[64];
static __thread ncclComm_t coming[64];
static __thread int born;
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank) {
    (void)id;
    note("InitRank %d of %d", rank, nranks);
    if (depth == 0) return *comm = made(rank, nranks, rank), ncclSuccess;
    waiting[born] = comm, coming[born++] = made(rank, nranks, rank);
    return ncclSuccess;
}
ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices) {
    note("InitAll %d", count);
    for (int i = 0; i < count; i++) comms[i] = made(i, count, devices ? devices[i] : i);
    return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) { return note("Finalize %d", comm->rank), ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return note("Destroy %d", comm->rank), free(comm), ncclSuccess; }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return note("Abort %d", comm->rank), free(comm), ncclSuccess; }
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) { return *count = comm->count, ncclSuccess; }
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) { return *device = comm->device, ncclSuccess; }
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) { return *rank = comm->rank, ncclSuccess; }
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
    (void)comm;
    return *error = ncclSuccess, ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) { return result == ncclSuccess ? "no error" : "an error"; }
const char* ncclGetLastError(ncclComm_t comm) { return (void)comm, "the stand-in's last error"; }
ncclResult_t ncclMemAlloc(void** ptr, size_t size) {
    return note("MemAlloc"), (*ptr = malloc(size)) ? ncclSuccess : ncclSystemError;
}
ncclResult_t ncclMemFree(void* ptr) { return free(ptr), ncclSuccess; }

// A count of 7777 elements fails, as a wrong argument does.
static ncclResult_t call(const char* name, size_t count, int type, ncclComm_t comm) {
    note("%s rank %d count %zu type %d depth %d", name, comm->rank, count, type, depth);
    return count == 7777 ? ncclInvalidArgument : ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* a, void* b, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
                           cudaStream_t s) {
    return (void)a, (void)b, (void)op, (void)s, call("AllReduce", n, t, c);
}
ncclResult_t ncclBroadcast(const void* a, void* b, size_t n, ncclDataType_t t, int root, ncclComm_t c, cudaStream_t s) {
    return (void)a, (void)b, (void)root, (void)s, call("Broadcast", n, t, c);
}
// NCCL's own calls its other function by its public name, which may be bound to another library.
ncclResult_t ncclBcast(void* b, size_t n, ncclDataType_t t, int root, ncclComm_t c, cudaStream_t s) {
    note("Bcast rank %d", c->rank);
    return ncclBroadcast(b, b, n, t, root, c, s);
}
ncclResult_t ncclReduce(const void* a, void* b, size_t n, ncclDataType_t t, ncclRedOp_t op, int root, ncclComm_t c,
                        cudaStream_t s) {
    return (void)a, (void)b, (void)op, (void)root, (void)s, call("Reduce", n, t, c);
}
ncclResult_t ncclAllGather(const void* a, void* b, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t s) {
    return (void)a, (void)b, (void)s, call("AllGather", n, t, c);
}
ncclResult_t ncclReduceScatter(const void* a, void* b, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
                               cudaStream_t s) {
    return (void)a, (void)b, (void)op, (void)s, call("ReduceScatter", n, t, c);
}
ncclResult_t ncclAlltoAll(const void* a, void* b, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t s) {
    return (void)a, (void)b, (void)s, call("AlltoAll", n, t, c);
}
ncclResult_t ncclSend(const void* a, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s) {
    return (void)a, (void)peer, (void)s, call("Send", n, t, c);
}
ncclResult_t ncclRecv(void* b, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s) {
    return (void)b, (void)peer, (void)s, call("Recv", n, t, c);
}
ncclResult_t ncclGroupStart(void) { return depth++, ncclSuccess; }
ncclResult_t ncclGroupEnd(void) {
    if (depth == 0) return ncclInvalidUsage;
    if (--depth > 0) return ncclSuccess;
    note("GroupEnd");
    for (int i = 0; i < born; i++) *waiting[i] = coming[i];
    born = 0;
    return ncclSuccess;
}
