#pragma once
// Single accesses at system scope: PTX with its scopes on the device, the compiler's atomics on the host.
// Addresses are of global memory; 1, 2, 4 or 8 bytes, aligned to their size.
#include "base.cuh"

namespace tandem {
namespace fabric {
namespace detail {

#if defined(__CUDA_ARCH__)

/// The unsigned integer of a size.
template <size_t BYTES> struct Bits;
template <> struct Bits<1> {
    using type = uint8_t;
};
template <> struct Bits<2> {
    using type = uint16_t;
};
template <> struct Bits<4> {
    using type = uint32_t;
};
template <> struct Bits<8> {
    using type = uint64_t;
};
template <class T> using bits_of = typename Bits<sizeof(T)>::type;

template <class To, class From> __device__ __forceinline__ To bit_cast(From from) {
    static_assert(sizeof(To) == sizeof(From), "the sizes are equal");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

__device__ __forceinline__ size_t global(const void* at) { return __cvta_generic_to_global(at); }

#define TANDEM_PTX_ACCESS(CONSTRAINT, TYPE, REGISTER, VALUE)                                                         \
    template <Order O> __device__ __forceinline__ VALUE ptx_load(const VALUE* at) {                                  \
        REGISTER value;                                                                                              \
        if constexpr (O == Order::acquire) {                                                                         \
            asm volatile("ld.acquire.sys.global." TYPE " %0, [%1];"                                                  \
                         : CONSTRAINT(=)(value)                                                                      \
                         : "l"(global(at))                                                                           \
                         : "memory");                                                                                \
        } else {                                                                                                     \
            asm volatile("ld.relaxed.sys.global." TYPE " %0, [%1];"                                                  \
                         : CONSTRAINT(=)(value)                                                                      \
                         : "l"(global(at))                                                                           \
                         : "memory");                                                                                \
        }                                                                                                            \
        return VALUE(value);                                                                                         \
    }                                                                                                                \
    template <Order O> __device__ __forceinline__ void ptx_store(VALUE* at, VALUE value) {                           \
        if constexpr (O == Order::release) {                                                                         \
            asm volatile("st.release.sys.global." TYPE " [%0], %1;" ::"l"(global(at)), CONSTRAINT()(REGISTER(value)) \
                         : "memory");                                                                                \
        } else {                                                                                                     \
            asm volatile("st.relaxed.sys.global." TYPE " [%0], %1;" ::"l"(global(at)), CONSTRAINT()(REGISTER(value)) \
                         : "memory");                                                                                \
        }                                                                                                            \
    }
#define TANDEM_REG_H(MODE) #MODE "h"
#define TANDEM_REG_R(MODE) #MODE "r"
#define TANDEM_REG_L(MODE) #MODE "l"
TANDEM_PTX_ACCESS(TANDEM_REG_H, "u8", uint16_t, uint8_t)
TANDEM_PTX_ACCESS(TANDEM_REG_H, "u16", uint16_t, uint16_t)
TANDEM_PTX_ACCESS(TANDEM_REG_R, "u32", uint32_t, uint32_t)
TANDEM_PTX_ACCESS(TANDEM_REG_L, "u64", uint64_t, uint64_t)
#undef TANDEM_PTX_ACCESS

/// Two words by one access of 16 bytes, aligned to 16. A relaxed access of 128 bits is in the memory model of PTX.
__device__ __forceinline__ void store_pair(uint64_t* at, uint64_t first, uint64_t second) {
    asm volatile(
        "{\n\t.reg .b128 pair;\n\tmov.b128 pair, {%1, %2};\n\tst.relaxed.sys.global.b128 [%0], pair;\n\t}" ::"l"(
            global(at)),
        "l"(first), "l"(second)
        : "memory");
}

__device__ __forceinline__ void load_pair(const uint64_t* at, uint64_t& first, uint64_t& second) {
    asm volatile("{\n\t.reg .b128 pair;\n\tld.relaxed.sys.global.b128 pair, [%2];\n\tmov.b128 {%0, %1}, pair;\n\t}"
                 : "=l"(first), "=l"(second)
                 : "l"(global(at))
                 : "memory");
}

/// Names of the read-modify-write operations; each is a set of overloads made below.
struct Add {};
struct And {};
struct Or {};
struct Xor {};
struct Exchange {};

#define TANDEM_PTX_FETCH(NAME, SEM, ORDER, PTX32, PTX64)                                                    \
    __device__ __forceinline__ uint32_t ptx_fetch(NAME, std::integral_constant<Order, ORDER>, uint32_t* at, \
                                                  uint32_t value) {                                         \
        uint32_t old;                                                                                       \
        asm volatile("atom." SEM ".sys.global." PTX32 " %0, [%1], %2;"                                      \
                     : "=r"(old)                                                                            \
                     : "l"(global(at)), "r"(value)                                                          \
                     : "memory");                                                                           \
        return old;                                                                                         \
    }                                                                                                       \
    __device__ __forceinline__ uint64_t ptx_fetch(NAME, std::integral_constant<Order, ORDER>, uint64_t* at, \
                                                  uint64_t value) {                                         \
        uint64_t old;                                                                                       \
        asm volatile("atom." SEM ".sys.global." PTX64 " %0, [%1], %2;"                                      \
                     : "=l"(old)                                                                            \
                     : "l"(global(at)), "l"(value)                                                          \
                     : "memory");                                                                           \
        return old;                                                                                         \
    }
#define TANDEM_PTX_CHANGE(NAME, SEM, ORDER, PTX32, PTX64)                                                    \
    __device__ __forceinline__ void ptx_change(NAME, std::integral_constant<Order, ORDER>, uint32_t* at,     \
                                               uint32_t value) {                                             \
        asm volatile("red." SEM ".sys.global." PTX32 " [%0], %1;" ::"l"(global(at)), "r"(value) : "memory"); \
    }                                                                                                        \
    __device__ __forceinline__ void ptx_change(NAME, std::integral_constant<Order, ORDER>, uint64_t* at,     \
                                               uint64_t value) {                                             \
        asm volatile("red." SEM ".sys.global." PTX64 " [%0], %1;" ::"l"(global(at)), "l"(value) : "memory"); \
    }
#define TANDEM_PTX_SWAP_IF(SEM, ORDER)                                                                  \
    __device__ __forceinline__ uint32_t ptx_swap_if(std::integral_constant<Order, ORDER>, uint32_t* at, \
                                                    uint32_t expected, uint32_t value) {                \
        uint32_t old;                                                                                   \
        asm volatile("atom." SEM ".sys.global.cas.b32 %0, [%1], %2, %3;"                                \
                     : "=r"(old)                                                                        \
                     : "l"(global(at)), "r"(expected), "r"(value)                                       \
                     : "memory");                                                                       \
        return old;                                                                                     \
    }                                                                                                   \
    __device__ __forceinline__ uint64_t ptx_swap_if(std::integral_constant<Order, ORDER>, uint64_t* at, \
                                                    uint64_t expected, uint64_t value) {                \
        uint64_t old;                                                                                   \
        asm volatile("atom." SEM ".sys.global.cas.b64 %0, [%1], %2, %3;"                                \
                     : "=l"(old)                                                                        \
                     : "l"(global(at)), "l"(expected), "l"(value)                                       \
                     : "memory");                                                                       \
        return old;                                                                                     \
    }
#define TANDEM_PTX_ORDERED(SEM, ORDER)                             \
    TANDEM_PTX_FETCH(Add, SEM, ORDER, "add.u32", "add.u64")        \
    TANDEM_PTX_FETCH(And, SEM, ORDER, "and.b32", "and.b64")        \
    TANDEM_PTX_FETCH(Or, SEM, ORDER, "or.b32", "or.b64")           \
    TANDEM_PTX_FETCH(Xor, SEM, ORDER, "xor.b32", "xor.b64")        \
    TANDEM_PTX_FETCH(Exchange, SEM, ORDER, "exch.b32", "exch.b64") \
    TANDEM_PTX_SWAP_IF(SEM, ORDER)
#define TANDEM_PTX_REDUCED(SEM, ORDER)                       \
    TANDEM_PTX_CHANGE(Add, SEM, ORDER, "add.u32", "add.u64") \
    TANDEM_PTX_CHANGE(And, SEM, ORDER, "and.b32", "and.b64") \
    TANDEM_PTX_CHANGE(Or, SEM, ORDER, "or.b32", "or.b64")    \
    TANDEM_PTX_CHANGE(Xor, SEM, ORDER, "xor.b32", "xor.b64")
TANDEM_PTX_ORDERED("relaxed", Order::relaxed)
TANDEM_PTX_ORDERED("acquire", Order::acquire)
TANDEM_PTX_ORDERED("release", Order::release)
TANDEM_PTX_ORDERED("acq_rel", Order::acq_rel)
TANDEM_PTX_REDUCED("relaxed", Order::relaxed)
TANDEM_PTX_REDUCED("release", Order::release)
#undef TANDEM_PTX_FETCH
#undef TANDEM_PTX_CHANGE
#undef TANDEM_PTX_SWAP_IF
#undef TANDEM_PTX_ORDERED
#undef TANDEM_PTX_REDUCED
#undef TANDEM_REG_H
#undef TANDEM_REG_R
#undef TANDEM_REG_L

#else

// ThreadSanitizer does not know fences. Under it, every access carries the order that a fence before or after it would
// give, and a fence is an access to one common word.
#if defined(__SANITIZE_THREAD__)
constexpr int host_order(Order order, bool loads, bool stores) {
    return order == Order::acq_rel || (loads && stores) ? __ATOMIC_ACQ_REL
           : loads                                      ? __ATOMIC_ACQUIRE
                                                        : __ATOMIC_RELEASE;
}
#else
constexpr int host_order(Order order, bool, bool) {
    return order == Order::relaxed   ? __ATOMIC_RELAXED
           : order == Order::acquire ? __ATOMIC_ACQUIRE
           : order == Order::release ? __ATOMIC_RELEASE
                                     : __ATOMIC_ACQ_REL;
}
#endif

struct Add {
    template <int ORDER, class T> static T apply(T* at, T value) { return __atomic_fetch_add(at, value, ORDER); }
};
// A loop of our own: what GCC 12.2 makes of a used __atomic_fetch_and, _or or _xor at -O1 and above can overwrite the
// register that holds the address (x86-64).
template <int ORDER, class T, class F> static T exchange_until(T* at, F change) {
    T old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at, &old, change(old), true, ORDER, __ATOMIC_RELAXED)) {}
    return old;
}
struct And {
    template <int ORDER, class T> static T apply(T* at, T value) {
        return exchange_until<ORDER>(at, [=](T old) { return T(old & value); });
    }
};
struct Or {
    template <int ORDER, class T> static T apply(T* at, T value) {
        return exchange_until<ORDER>(at, [=](T old) { return T(old | value); });
    }
};
struct Xor {
    template <int ORDER, class T> static T apply(T* at, T value) {
        return exchange_until<ORDER>(at, [=](T old) { return T(old ^ value); });
    }
};
struct Exchange {
    template <int ORDER, class T> static T apply(T* at, T value) {
        T old;
        __atomic_exchange(at, &value, &old, ORDER);
        return old;
    }
};

#endif

/// A type that single accesses take.
template <class T> constexpr bool IS_WORD =
    std::is_trivially_copyable<T>::value && (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);

/// Reads; O is relaxed or acquire.
template <Order O, class T> TANDEM_FABRIC_FN T load(const T* at) {
    static_assert(IS_WORD<T> && (O == Order::relaxed || O == Order::acquire), "a word, relaxed or acquire");
#if defined(__CUDA_ARCH__)
    return bit_cast<T>(ptx_load<O>(reinterpret_cast<const bits_of<T>*>(at)));
#else
    T value;
    __atomic_load(at, &value, host_order(O, true, false));
    return value;
#endif
}

/// Writes; O is relaxed or release.
template <Order O, class T> TANDEM_FABRIC_FN void store(T* at, T value) {
    static_assert(IS_WORD<T> && (O == Order::relaxed || O == Order::release), "a word, relaxed or release");
#if defined(__CUDA_ARCH__)
    ptx_store<O>(reinterpret_cast<bits_of<T>*>(at), bit_cast<bits_of<T>>(value));
#else
    __atomic_store(at, &value, host_order(O, false, true));
#endif
}

/// Changes by an operation and returns what was there.
template <class Operation, Order O, class T> TANDEM_FABRIC_FN T fetch(T* at, T value) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomic operations are on 32 and 64 bits");
#if defined(__CUDA_ARCH__)
    return bit_cast<T>(ptx_fetch(Operation(), std::integral_constant<Order, O>(), reinterpret_cast<bits_of<T>*>(at),
                                 bit_cast<bits_of<T>>(value)));
#else
    return Operation::template apply<host_order(O, true, true)>(at, value);
#endif
}

/// Changes by an operation; nothing comes back, so the caller does not wait. O is relaxed or release.
template <class Operation, Order O, class T> TANDEM_FABRIC_FN void change(T* at, T value) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomic operations are on 32 and 64 bits");
    static_assert(O == Order::relaxed || O == Order::release, "nothing is read");
#if defined(__CUDA_ARCH__)
    ptx_change(Operation(), std::integral_constant<Order, O>(), reinterpret_cast<bits_of<T>*>(at),
               bit_cast<bits_of<T>>(value));
#else
    Operation::template apply<host_order(O, true, true)>(at, value);
#endif
}

/// Writes `value` where `expected` was, and returns what was there.
template <Order O, class T> TANDEM_FABRIC_FN T swap_if(T* at, T expected, T value) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomic operations are on 32 and 64 bits");
#if defined(__CUDA_ARCH__)
    return bit_cast<T>(ptx_swap_if(std::integral_constant<Order, O>(), reinterpret_cast<bits_of<T>*>(at),
                                   bit_cast<bits_of<T>>(expected), bit_cast<bits_of<T>>(value)));
#else
    constexpr int success = host_order(O, true, true);
    constexpr int failure =
        success == __ATOMIC_RELAXED || success == __ATOMIC_RELEASE ? __ATOMIC_RELAXED : __ATOMIC_ACQUIRE;
    __atomic_compare_exchange(at, &expected, &value, false, success, failure);
    return expected;
#endif
}

#if defined(__SANITIZE_THREAD__) && !defined(__CUDA_ARCH__)
inline uint32_t fence_word = 0;
#endif

/// Orders everything before it before everything after it, except an earlier write with a later read.
TANDEM_FABRIC_FN void fence_acq_rel() {
#if defined(__CUDA_ARCH__)
    asm volatile("fence.acq_rel.sys;" ::: "memory");
#elif defined(__SANITIZE_THREAD__)
    __atomic_fetch_add(&fence_word, 1u, __ATOMIC_SEQ_CST);
#else
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
#endif
}

/// A fence that orders all before it and all after it, and there is one order of all such fences of all PEs: an earlier write comes before
/// a later read too.
TANDEM_FABRIC_FN void fence_seq_cst() {
#if defined(__CUDA_ARCH__)
    asm volatile("fence.sc.sys;" ::: "memory");
#elif defined(__SANITIZE_THREAD__)
    __atomic_fetch_add(&fence_word, 1u, __ATOMIC_SEQ_CST);
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

}  // namespace detail
}  // namespace fabric
}  // namespace tandem
