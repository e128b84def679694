// One operation of the device API as a kernel, for tests that compare every one with a naive model. As in a debug build,
// accesses past the end are found.
#if !defined(TANDEM_FABRIC_CHECKS)
#define TANDEM_FABRIC_CHECKS
#endif
#include "tandem/fabric.cuh"
#include "tandem_fabric_examples.h"

using namespace tandem::fabric;

namespace {

template <class T, class Group>
__device__ void transfer(const tandem_team& team, const tandem_single_args& args, Group group) {
    T* to = reinterpret_cast<T*>(args.to);
    const T* from = reinterpret_cast<const T*>(args.from);
    switch (args.op) {
        case TANDEM_SINGLE_PUT: put(team, to, from, args.count, args.peer, group); break;
        case TANDEM_SINGLE_GET: get(team, to, from, args.count, args.peer, group); break;
        case TANDEM_SINGLE_IPUT:
            iput(team, to, from, args.to_stride, args.from_stride, args.count, args.peer, group);
            break;
        case TANDEM_SINGLE_IGET:
            iget(team, to, from, args.to_stride, args.from_stride, args.count, args.peer, group);
            break;
        case TANDEM_SINGLE_PUT_SIGNAL:
            put_signal(team, to, from, args.count, reinterpret_cast<uint64_t*>(args.signal), Signal(args.how),
                       args.value, args.peer, group);
            break;
        default: break;
    }
}

template <class T> __device__ void element(const tandem_team& team, const tandem_single_args& args) {
    if (args.op == TANDEM_SINGLE_P)
        p(team, reinterpret_cast<T*>(args.to), *reinterpret_cast<const T*>(args.from), args.peer);
    if (args.op == TANDEM_SINGLE_G)
        *reinterpret_cast<T*>(args.to) = g(team, reinterpret_cast<const T*>(args.from), args.peer);
}

template <class T> __device__ void atomic(const tandem_team& team, const tandem_single_args& args) {
    T* word = reinterpret_cast<T*>(args.to);
    const T value = T(args.value);
    T found = 0;
    switch (args.how) {
        case TANDEM_AMO_SET: found = atomic_swap(team, word, value, args.peer); break;
        case TANDEM_AMO_ADD: found = atomic_fetch_add<Order::acq_rel>(team, word, value, args.peer); break;
        case TANDEM_AMO_INC: found = atomic_fetch_inc(team, word, args.peer); break;
        case TANDEM_AMO_AND: found = atomic_fetch_and(team, word, value, args.peer); break;
        case TANDEM_AMO_OR: found = atomic_fetch_or<Order::acquire>(team, word, value, args.peer); break;
        case TANDEM_AMO_XOR: found = atomic_fetch_xor<Order::release>(team, word, value, args.peer); break;
        case TANDEM_AMO_COMPARE_SWAP:
            found = atomic_compare_swap(team, word, T(args.expected), value, args.peer);
            break;
        default: found = atomic_fetch<Order::acquire>(team, word, args.peer); break;
    }
    *reinterpret_cast<T*>(args.from) = found;
}

/// The forms that return nothing.
template <class T> __device__ void change(const tandem_team& team, const tandem_single_args& args) {
    T* word = reinterpret_cast<T*>(args.to);
    const T value = T(args.value);
    switch (args.how) {
        case TANDEM_AMO_SET: atomic_set<Order::release>(team, word, value, args.peer); break;
        case TANDEM_AMO_ADD: atomic_add(team, word, value, args.peer); break;
        case TANDEM_AMO_INC: atomic_inc<Order::release>(team, word, args.peer); break;
        case TANDEM_AMO_AND: atomic_and(team, word, value, args.peer); break;
        case TANDEM_AMO_OR: atomic_or(team, word, value, args.peer); break;
        default: atomic_xor<Order::release>(team, word, value, args.peer); break;
    }
}

template <class Group>
__device__ void wait(const tandem_team& team, const tandem_single_args& args, Group group) {
    constexpr uint32_t MAX_THREADS = 512;
    const uint64_t* words = reinterpret_cast<const uint64_t*>(args.from);
    const int32_t* skip = reinterpret_cast<const int32_t*>(args.signal);
    uint64_t* got = reinterpret_cast<uint64_t*>(args.to);
    if (args.op == TANDEM_SINGLE_WAIT_ANY) {
        got[group.rank()] = wait_until_any(team, words, args.count, skip, Compare(args.how), args.value, args.peer,
                                           args.expected, group);
        return;
    }
    // What the thread that looked wrote, the others read.
    size_t* indices = reinterpret_cast<size_t*>(got + 2 * MAX_THREADS);
    const size_t found =
        wait_until_some(team, words, args.count, indices, skip, Compare(args.how), args.value, args.peer, group);
    uint64_t sum = 0;
    for (size_t i = 0; i < found; i++) sum += indices[i];
    got[group.rank()] = found;
    got[MAX_THREADS + group.rank()] = sum;
}

template <class T> __global__ void single_kernel(const __grid_constant__ tandem_team team,
                                                 const __grid_constant__ tandem_single_args args) {
    if (args.op <= TANDEM_SINGLE_PUT_SIGNAL) {
        if (args.scope == TANDEM_SCOPE_BLOCK) transfer<T>(team, args, Block());
        if (args.scope == TANDEM_SCOPE_WARP && threadIdx.x < 32) transfer<T>(team, args, Warp());
        if (args.scope == TANDEM_SCOPE_THREAD && threadIdx.x == 0) transfer<T>(team, args, Thread());
    } else if (args.op >= TANDEM_SINGLE_WAIT_ANY) {
        if (args.scope == TANDEM_SCOPE_BLOCK) wait(team, args, Block());
        if (args.scope == TANDEM_SCOPE_WARP && threadIdx.x < 32) wait(team, args, Warp());
        if (args.scope == TANDEM_SCOPE_THREAD && threadIdx.x == 0) wait(team, args, Thread());
    } else if (threadIdx.x == 0) {
        element<T>(team, args);
        if constexpr (std::is_integral<T>::value && sizeof(T) >= 4) {
            if (args.op == TANDEM_SINGLE_ATOMIC) atomic<T>(team, args);
            if (args.op == TANDEM_SINGLE_CHANGE) change<T>(team, args);
        }
    }
}

}  // namespace

extern "C" int32_t tandem_single(const tandem_team* team, const tandem_single_args* args, tandem_stream stream) {
    if (team == nullptr || args == nullptr || args->threads < 32 || args->threads > 512) return TANDEM_INVALID;
    switch (args->element) {
        case 1: single_kernel<uint8_t><<<1, args->threads, 0, stream>>>(*team, *args); break;
        case 2: single_kernel<uint16_t><<<1, args->threads, 0, stream>>>(*team, *args); break;
        case 4: single_kernel<uint32_t><<<1, args->threads, 0, stream>>>(*team, *args); break;
        case 8: single_kernel<uint64_t><<<1, args->threads, 0, stream>>>(*team, *args); break;
        case 12: single_kernel<uint3><<<1, args->threads, 0, stream>>>(*team, *args); break;
        case 16: single_kernel<uint4><<<1, args->threads, 0, stream>>>(*team, *args); break;
        default: return TANDEM_INVALID;
    }
    return int32_t(cudaGetLastError());
}
