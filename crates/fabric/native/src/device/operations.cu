// One-sided operations in the order of a stream.
#include "tandem/fabric.cuh"

using namespace tandem::fabric;

namespace {

constexpr uint32_t THREADS = 256;
constexpr uint64_t MAX_BLOCKS = 1024;

uint32_t blocks_for(uint64_t threads) {
    const uint64_t blocks = (threads + THREADS - 1) / THREADS;
    return uint32_t(blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS);
}

template <class T> __device__ T amo(const tandem_fabric_atomic_args& args, T* word) {
    using namespace detail;
    const T value = T(args.value);
    switch (args.op) {
        case TANDEM_AMO_SET:
            // A link that carries no atomics carries this.
            if (args.fetched == 0) {
                store<Order::release>(word, value);
                return value;
            }
            return fetch<Exchange, Order::release>(word, value);
        case TANDEM_AMO_ADD: return fetch<Add, Order::release>(word, value);
        case TANDEM_AMO_INC: return fetch<Add, Order::release>(word, T(1));
        case TANDEM_AMO_AND: return fetch<detail::And, Order::release>(word, value);
        case TANDEM_AMO_OR: return fetch<detail::Or, Order::release>(word, value);
        case TANDEM_AMO_XOR: return fetch<detail::Xor, Order::release>(word, value);
        case TANDEM_AMO_COMPARE_SWAP: return swap_if<Order::release>(word, T(args.expected), value);
        default: return load<Order::acquire>(word);
    }
}

template <class T> __global__ void atomic_kernel(const tandem_fabric_atomic_args args) {
    const T before = amo(args, reinterpret_cast<T*>(args.word));
    if (args.fetched != 0) *reinterpret_cast<T*>(args.fetched) = before;
}

template <class T>
__global__ void wait_kernel(const __grid_constant__ tandem_team team, const tandem_fabric_wait_args args) {
    const T* words = reinterpret_cast<const T*>(args.words);
    const Compare compare = Compare(args.compare);
    const T wanted = T(args.wanted);
    uint64_t* found = reinterpret_cast<uint64_t*>(args.found);
    if (args.mode == TANDEM_WAIT_ALL) {
        wait_until_all(team, words, args.count, nullptr, compare, wanted, args.from, Warp());
        return;
    }
    if (threadIdx.x != 0) return;
    if (args.mode == TANDEM_WAIT_ANY || found == nullptr) {
        const size_t index = wait_until_any(team, words, args.count, nullptr, compare, wanted, args.from);
        if (found != nullptr) *found = index;
    } else {
        *found = wait_until_some(team, words, args.count, reinterpret_cast<size_t*>(found + 1), nullptr, compare,
                                 wanted, args.from);
    }
}

__global__ void barrier_kernel(const __grid_constant__ tandem_team team) { barrier(team, Warp()); }

/// Elements of `units` units each; thread by thread one unit.
template <class Unit> __global__ void strided_kernel(const tandem_fabric_strided_args args, uint64_t units) {
    Unit* to = reinterpret_cast<Unit*>(args.to);
    const Unit* from = reinterpret_cast<const Unit*>(args.from);
    const uint64_t step = uint64_t(gridDim.x) * blockDim.x, all = args.count * units;
    for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < all; i += step) {
        const uint64_t element = i / units, unit = i % units;
        to[element * args.to_stride * units + unit] = from[element * args.from_stride * units + unit];
    }
}

template <class Unit> int32_t strided(const tandem_fabric_strided_args& args, tandem_stream stream) {
    const uint64_t units = args.element / sizeof(Unit);
    strided_kernel<Unit><<<blocks_for(args.count * units), THREADS, 0, stream>>>(args, units);
    return int32_t(cudaGetLastError());
}

__global__ void store_kernel(const tandem_fabric_store_args args) {
    const uint8_t* from = reinterpret_cast<const uint8_t*>(args.value);
    uint8_t* to = reinterpret_cast<uint8_t*>(args.to);
    const uint64_t bytes = args.bytes;
    const bool is_word = (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && args.to % bytes == 0;
    if (!is_word) {
        for (uint64_t i = 0; i < bytes; i++) to[i] = from[i];
    } else if (bytes == 8) {
        detail::store<Order::relaxed>(reinterpret_cast<uint64_t*>(to), args.value[0]);
    } else if (bytes == 4) {
        detail::store<Order::relaxed>(reinterpret_cast<uint32_t*>(to), uint32_t(args.value[0]));
    } else if (bytes == 2) {
        detail::store<Order::relaxed>(reinterpret_cast<uint16_t*>(to), uint16_t(args.value[0]));
    } else {
        detail::store<Order::relaxed>(to, uint8_t(args.value[0]));
    }
}

}  // namespace

extern "C" int32_t tandem_fabric_atomic(const tandem_fabric_atomic_args* args, tandem_stream stream) {
    if (args == nullptr || args->op < TANDEM_AMO_SET || args->op > TANDEM_AMO_FETCH) return TANDEM_INVALID;
    // Arithmetic is modulo 2^32 or 2^64, the same for signed words and unsigned ones.
    switch (args->kind) {
        case TANDEM_WORD_U32:
        case TANDEM_WORD_I32: atomic_kernel<uint32_t><<<1, 1, 0, stream>>>(*args); break;
        case TANDEM_WORD_U64:
        case TANDEM_WORD_I64: atomic_kernel<uint64_t><<<1, 1, 0, stream>>>(*args); break;
        default: return TANDEM_INVALID;
    }
    return int32_t(cudaGetLastError());
}

extern "C" int32_t tandem_fabric_wait(const tandem_team* team, const tandem_fabric_wait_args* args,
                                      tandem_stream stream) {
    if (team == nullptr || args == nullptr || args->compare < TANDEM_CMP_EQ || args->compare > TANDEM_CMP_LE ||
        args->mode < TANDEM_WAIT_ALL || args->mode > TANDEM_WAIT_SOME) {
        return TANDEM_INVALID;
    }
    if (args->count == 0 && args->found == 0) return TANDEM_OK;
    switch (args->kind) {
        case TANDEM_WORD_U32: wait_kernel<uint32_t><<<1, 32, 0, stream>>>(*team, *args); break;
        case TANDEM_WORD_I32: wait_kernel<int32_t><<<1, 32, 0, stream>>>(*team, *args); break;
        case TANDEM_WORD_U64: wait_kernel<uint64_t><<<1, 32, 0, stream>>>(*team, *args); break;
        case TANDEM_WORD_I64: wait_kernel<int64_t><<<1, 32, 0, stream>>>(*team, *args); break;
        default: return TANDEM_INVALID;
    }
    return int32_t(cudaGetLastError());
}

extern "C" int32_t tandem_fabric_barrier(const tandem_team* team, tandem_stream stream) {
    if (team == nullptr) return TANDEM_INVALID;
    barrier_kernel<<<1, 32, 0, stream>>>(*team);
    return int32_t(cudaGetLastError());
}

extern "C" int32_t tandem_fabric_strided(const tandem_fabric_strided_args* args, tandem_stream stream) {
    if (args == nullptr) return TANDEM_INVALID;
    if (args->count == 0 || args->element == 0) return TANDEM_OK;
    switch ((args->to | args->from | args->element) & 15) {
        case 0: return strided<uint4>(*args, stream);
        case 8: return strided<uint2>(*args, stream);
        case 4:
        case 12: return strided<uint32_t>(*args, stream);
        case 2:
        case 6:
        case 10:
        case 14: return strided<uint16_t>(*args, stream);
        default: return strided<uint8_t>(*args, stream);
    }
}

extern "C" int32_t tandem_fabric_store(const tandem_fabric_store_args* args, tandem_stream stream) {
    if (args == nullptr || args->bytes > sizeof args->value) return TANDEM_INVALID;
    if (args->bytes == 0) return TANDEM_OK;
    store_kernel<<<1, 1, 0, stream>>>(*args);
    return int32_t(cudaGetLastError());
}

extern "C" int32_t tandem_fabric_preload(uint64_t* kernels) {
    const auto load = [](auto kernel) {
        cudaFuncAttributes attributes;
        return cudaFuncGetAttributes(&attributes, kernel);
    };
    const cudaError_t loaded[] = {
        load(atomic_kernel<uint32_t>),
        load(atomic_kernel<uint64_t>),
        load(wait_kernel<uint32_t>),
        load(wait_kernel<int32_t>),
        load(wait_kernel<uint64_t>),
        load(wait_kernel<int64_t>),
        load(barrier_kernel),
        load(strided_kernel<uint4>),
        load(strided_kernel<uint2>),
        load(strided_kernel<uint32_t>),
        load(strided_kernel<uint16_t>),
        load(strided_kernel<uint8_t>),
        load(store_kernel),
    };
    *kernels = 0;
    for (const cudaError_t error : loaded) {
        if (error != cudaSuccess) {
            (void)cudaGetLastError();
            return int32_t(error);
        }
        *kernels += 1;
    }
    return TANDEM_OK;
}
