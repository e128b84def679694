/* A stand-in for NVIDIA's management library: what GPUs do is what the variable FAKE_NVML says, as "ADDRESS STATE,...".
 * Declared as in nvml.h, of which it needs nothing. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SUCCESS = 0,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    GPU_IS_LOST = 15
};

typedef const char* device_t; /* where its state stands in the variable */
typedef struct {
    unsigned pid;
    unsigned long long memory;
    unsigned instances[2];
} process_t;
typedef struct {
    unsigned gpu, memory;
} rates_t;
typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} memory_t;

static const char* said(void) {
    const char* text = getenv("FAKE_NVML");
    return text ? text : "";
}

static int is(device_t device, const char* state) {
    size_t length = strlen(state);
    return strncmp(device, state, length) == 0 && (device[length] == 0 || device[length] == ',');
}

int nvmlInit_v2(void) { return strcmp(said(), "broken") == 0 ? DRIVER_NOT_LOADED : SUCCESS; }

const char* nvmlErrorString(int status) { return status == NO_PERMISSION ? "Insufficient Permissions" : "GPU is lost"; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* address, device_t* device) {
    const char* at = strstr(said(), address);
    if (!at) return NOT_FOUND;
    *device = at + strlen(address) + 1;
    return SUCCESS;
}

static int one(unsigned* count, process_t* processes, unsigned pid, unsigned long long memory) {
    if (*count < 1) return INSUFFICIENT_SIZE;
    *count = 1;
    processes[0].pid = pid;
    processes[0].memory = memory;
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(device_t device, unsigned* count, process_t* processes) {
    if (is(device, "refused")) return NO_PERMISSION;
    if (is(device, "crowded")) return INSUFFICIENT_SIZE;
    if (is(device, "computes")) return one(count, processes, 4242, 700ull << 20);
    if (is(device, "own")) return one(count, processes, (unsigned)getpid(), 500ull << 20);
    /* That of another user, whose memory is not told. */
    if (is(device, "stranger")) return one(count, processes, 4343, ~0ull);
    *count = 0;
    return SUCCESS;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(device_t device, unsigned* count, process_t* processes) {
    if (is(device, "draws")) return one(count, processes, 4444, 9ull << 20);
    return NOT_SUPPORTED;
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(device_t device, unsigned* count, process_t* processes) {
    if (is(device, "mps")) return one(count, processes, 4545, 9ull << 20);
    *count = 0;
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(device_t device, rates_t* rates) {
    if (is(device, "lost")) return GPU_IS_LOST;
    rates->gpu = is(device, "busy") ? 40 : 0;
    rates->memory = 0;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(device_t device, memory_t* memory) {
    if (memory->version != (sizeof *memory | 2u << 24)) return NOT_SUPPORTED;
    memory->used = is(device, "hidden") ? 900ull << 20 : is(device, "own") ? 503ull << 20 : 3ull << 20;
    return SUCCESS;
}

int nvmlDeviceGetMigMode(device_t device, unsigned* now, unsigned* then) {
    if (is(device, "old")) return NOT_SUPPORTED;
    *now = *then = is(device, "mig");
    return SUCCESS;
}
