#pragma once
// What is reduced, and to what: for each kind of elements and each operation the values in flight, how an element becomes
// one, and how two become one.
#include "tandem/field.cuh"
#include "tandem/params.cuh"

#include <type_traits>

namespace tandem {
namespace reduce {

/// The sum: modulo 2^32 or 2^64, rounded to nearest, or in the field.
template <class T> struct Sum {
    using Element = T;
    using Value = T;
    static __device__ __forceinline__ Value neutral() {
        if constexpr (std::is_arithmetic_v<T>) {
            return T(0);
        } else {
            return T::zero();
        }
    }
    static __device__ __forceinline__ Value lift(Element x) { return x; }
    static __device__ __forceinline__ Value combine(Value a, Value b) { return a + b; }
    static __device__ __forceinline__ Element lower(Value a) { return a; }
};

/// An unsigned integer in whose order elements are compared. Floating point: -0 is below 0, and whatever is no number goes
/// to the end that is looked for.
template <class T, bool GREATEST> struct Key {
    using Type = T;
    static __device__ __forceinline__ Type of(T x) { return x; }
    static __device__ __forceinline__ T back(Type key) { return key; }
};

/// The bits of a number, all of them inverted if it is negative, else the sign alone.
template <class T, class U, bool GREATEST> struct FloatKey {
    using Type = U;
    static constexpr U SIGN = U(1) << (sizeof(U) * 8 - 1);
    static __device__ __forceinline__ Type of(T x) {
        U bits;
        memcpy(&bits, &x, sizeof bits);
        if (x != x) return GREATEST ? ~U(0) : U(0);
        return bits & SIGN ? ~bits : bits | SIGN;
    }
    static __device__ __forceinline__ T back(Type key) {
        const U bits = key & SIGN ? key ^ SIGN : ~key;
        T x;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
};
template <bool GREATEST> struct Key<float, GREATEST> : FloatKey<float, uint32_t, GREATEST> {};
template <bool GREATEST> struct Key<double, GREATEST> : FloatKey<double, uint64_t, GREATEST> {};

/// The least or the greatest element.
template <class T, bool GREATEST> struct Extreme {
    using Element = T;
    using Value = typename Key<T, GREATEST>::Type;
    static __device__ __forceinline__ Value neutral() { return GREATEST ? Value(0) : ~Value(0); }
    static __device__ __forceinline__ Value lift(Element x) { return Key<T, GREATEST>::of(x); }
    static __device__ __forceinline__ Value combine(Value a, Value b) { return (a < b) == GREATEST ? b : a; }
    static __device__ __forceinline__ Element lower(Value a) { return Key<T, GREATEST>::back(a); }
};

/// Whether the integer a is below b.
template <class P> __device__ __forceinline__ bool below(const Fp<P>& a, const Fp<P>& b) {
    uint32_t difference[P::N];
    return limbs::sub<P::N>(difference, a.limb, b.limb) != 0;
}

/// Integers of a scalar field, in their order.
template <class P, bool GREATEST> struct Extreme<Fp<P>, GREATEST> {
    using Element = Fp<P>;
    using Value = Fp<P>;
    static __device__ __forceinline__ Value neutral() {
        Value r;
#pragma unroll
        for (int i = 0; i < P::N; i++) r.limb[i] = GREATEST ? 0 : ~0u;
        return r;
    }
    static __device__ __forceinline__ Value lift(Element x) { return x; }
    static __device__ __forceinline__ Value combine(Value a, Value b) { return below(a, b) == GREATEST ? b : a; }
    static __device__ __forceinline__ Element lower(Value a) { return a; }
};

/// Whether an element is one: integers of a field may be not below its modulus.
template <class T> __device__ __forceinline__ bool is_element(const T&) { return true; }
template <class P> __device__ __forceinline__ bool is_element(const Fp<P>& x) {
    constexpr Limbs<P::N> p = P::modulus();
    uint32_t difference[P::N];
    return limbs::sub<P::N>(difference, x.limb, p.limb) != 0;
}

}  // namespace reduce
}  // namespace tandem
