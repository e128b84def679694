// One collective of the device API as a kernel, by a thread, a warp or a block, for tests that compare every one with sums over
// all inputs. As in a debug build, accesses past the end are found.
#if !defined(TANDEM_FABRIC_CHECKS)
#define TANDEM_FABRIC_CHECKS
#endif
#include "tandem/fabric.cuh"
#include "tandem_fabric_examples.h"

using namespace tandem::fabric;

namespace {

/// A number modulo 2^255 - 19, in 32 bytes.
struct Field {
    uint64_t limb[4];
};

__host__ __device__ Field operator+(Field a, Field b) {
    const uint64_t p[4] = {~uint64_t(18), ~uint64_t(0), ~uint64_t(0), ~uint64_t(0) >> 1};
    Field sum, less;
    uint64_t carry = 0, borrow = 0;
    for (int i = 0; i < 4; i++) {
        sum.limb[i] = a.limb[i] + carry;
        carry = sum.limb[i] < carry;
        sum.limb[i] += b.limb[i];
        carry += sum.limb[i] < b.limb[i];
    }
    for (int i = 0; i < 4; i++) {
        const uint64_t taken = p[i] + borrow;
        // With a borrow, 2^64 - 1 and one more is a whole word.
        const bool is_whole = taken < borrow;
        less.limb[i] = sum.limb[i] - taken;
        borrow = is_whole || sum.limb[i] < taken;
    }
    return borrow == 0 ? less : sum;
}

/// An operation that is known when it runs, so that there is one kernel for all. Not inlined: it would be so often that compilers
/// take minutes.
template <class T> __device__ __noinline__ T chosen(int32_t how, T a, T b) {
    if constexpr (std::is_integral<T>::value) {
        if (how == TANDEM_EXEC_AND) return And()(a, b);
        if (how == TANDEM_EXEC_OR) return Or()(a, b);
        if (how == TANDEM_EXEC_XOR) return Xor()(a, b);
    }
    if constexpr (!std::is_same<T, Field>::value) {
        if (how == TANDEM_EXEC_PRODUCT) return Product()(a, b);
        if (how == TANDEM_EXEC_MIN) return Min()(a, b);
        if (how == TANDEM_EXEC_MAX) return Max()(a, b);
    }
    return Sum()(a, b);
}

struct Chosen {
    int32_t how;
    template <class T> __device__ T operator()(T a, T b) const { return chosen(how, a, b); }
};

/// What only moves is of a size and no kind.
template <size_t BYTES> struct Moved {
    using type = Field;
};
template <> struct Moved<1> {
    using type = uint8_t;
};
template <> struct Moved<2> {
    using type = uint16_t;
};
template <> struct Moved<4> {
    using type = uint32_t;
};
template <> struct Moved<8> {
    using type = uint64_t;
};

template <class T, class Group>
__device__ __noinline__ bool moved(const tandem_team& team, const tandem_collective_args& args, Group group) {
    T* to = reinterpret_cast<T*>(args.to);
    const T* from = reinterpret_cast<const T*>(args.from);
    switch (args.what) {
        case TANDEM_INSIDE_BROADCAST: return broadcast(team, to, from, args.count, args.root, group);
        case TANDEM_INSIDE_ALL_GATHER: return fcollect(team, to, from, args.count, group);
        case TANDEM_INSIDE_ALL_TO_ALL: return all_to_all(team, to, from, args.count, group);
        default: return barrier(team, group);
    }
}

template <class T, class Group>
__device__ bool collective(const tandem_team& team, const tandem_collective_args& args, Group group) {
    if (args.what != TANDEM_INSIDE_ALL_REDUCE) return moved<typename Moved<sizeof(T)>::type>(team, args, group);
    return all_reduce(team, reinterpret_cast<T*>(args.to), reinterpret_cast<const T*>(args.from), args.count,
                      Chosen{args.how}, group);
}

/// Kinds that threads and warps are compiled for too; others are a block's, which may be of one warp or thread.
template <class T> constexpr bool HAS_SCOPES =
    std::is_same<T, uint8_t>::value || std::is_same<T, uint64_t>::value || std::is_same<T, f16>::value;

template <class T> __global__ void __launch_bounds__(512)
    collective_kernel(const __grid_constant__ tandem_team team, const __grid_constant__ tandem_collective_args args) {
    bool is_well = true;
    if (!HAS_SCOPES<T> || args.scope == TANDEM_SCOPE_BLOCK) is_well = collective<T>(team, args, Block());
    if constexpr (HAS_SCOPES<T>) {
        if (args.scope == TANDEM_SCOPE_WARP && threadIdx.x < 32) is_well = collective<T>(team, args, Warp());
        if (args.scope == TANDEM_SCOPE_THREAD && threadIdx.x == 0) is_well = collective<T>(team, args, Thread());
    }
    if (threadIdx.x == 0) *reinterpret_cast<uint64_t*>(args.done) += is_well ? 1 : 1000;
}

template <class T> int32_t found(tandem_kernel* kernel) {
    *kernel = reinterpret_cast<tandem_kernel>(collective_kernel<T>);
    return TANDEM_OK;
}

}  // namespace

extern "C" int32_t tandem_collective(int32_t kind, tandem_kernel* kernel) {
    switch (kind) {
        case TANDEM_EXEC_U8: return found<uint8_t>(kernel);
        case TANDEM_EXEC_I8: return found<int8_t>(kernel);
        case TANDEM_EXEC_U16: return found<uint16_t>(kernel);
        case TANDEM_EXEC_I16: return found<int16_t>(kernel);
        case TANDEM_EXEC_U32: return found<uint32_t>(kernel);
        case TANDEM_EXEC_I32: return found<int32_t>(kernel);
        case TANDEM_EXEC_U64: return found<uint64_t>(kernel);
        case TANDEM_EXEC_I64: return found<int64_t>(kernel);
        case TANDEM_EXEC_F16: return found<f16>(kernel);
        case TANDEM_EXEC_BF16: return found<bf16>(kernel);
        case TANDEM_EXEC_F32: return found<float>(kernel);
        case TANDEM_EXEC_F64: return found<double>(kernel);
        case TANDEM_COLLECTIVE_FIELD: return found<Field>(kernel);
        default: return TANDEM_INVALID;
    }
}
