#pragma once
// Multi-limb integers on the host: 32-bit limbs in memory, worked on as 64-bit words with 128-bit products.
// The functions are those of limbs_device.cuh, which states what each one does.
#include "params.cuh"

namespace tandem {
namespace limbs_host {

typedef unsigned __int128 uint128_t;

/// 64-bit word i of a little-endian array of 32-bit limbs.
inline uint64_t word(const uint32_t* a, int i) { return uint64_t(a[2 * i]) | uint64_t(a[2 * i + 1]) << 32; }
inline void set_word(uint32_t* a, int i, uint64_t w) {
    a[2 * i] = uint32_t(w);
    a[2 * i + 1] = uint32_t(w >> 32);
}

template <int N> inline uint32_t add(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    uint64_t carry = 0;
    for (int i = 0; i < N / 2; i++) {
        uint128_t t = uint128_t(word(a, i)) + word(b, i) + carry;
        set_word(r, i, uint64_t(t));
        carry = uint64_t(t >> 64);
    }
    if (N % 2) {
        carry += uint64_t(a[N - 1]) + b[N - 1];
        r[N - 1] = uint32_t(carry);
        carry >>= 32;
    }
    return uint32_t(carry);
}

template <int N> inline uint32_t sub(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    uint64_t borrow = 0;
    for (int i = 0; i < N / 2; i++) {
        uint128_t t = uint128_t(word(a, i)) - word(b, i) - borrow;
        set_word(r, i, uint64_t(t));
        borrow = uint64_t(t >> 64) & 1;
    }
    return 0u - uint32_t(borrow);
}

template <class P> inline void reduce_once(uint32_t* a) {
    uint32_t t[P::N];
    constexpr Limbs<P::N> p = P::modulus();
    if (!sub<P::N>(t, a, p.limb)) std::memcpy(a, t, sizeof t);
}

template <int N> inline void mul_wide(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    uint64_t t[N] = {};
    for (int i = 0; i < N / 2; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < N / 2; j++) {
            uint128_t m = uint128_t(word(a, j)) * word(b, i) + t[i + j] + carry;
            t[i + j] = uint64_t(m);
            carry = uint64_t(m >> 64);
        }
        t[i + N / 2] = carry;
    }
    for (int i = 0; i < N; i++) set_word(r, i, t[i]);
}

template <int N> inline void sqr_wide(uint32_t* r, const uint32_t* a) { mul_wide<N>(r, a, a); }

template <class P> inline void mont_reduce(uint32_t* r, const uint32_t* wide) {
    constexpr int W = P::N / 2;
    constexpr Limbs<P::N> p = P::modulus();
    uint64_t t[2 * W];
    for (int i = 0; i < 2 * W; i++) t[i] = word(wide, i);
    uint64_t top = 0;
    for (int i = 0; i < W; i++) {
        uint64_t q = t[i] * P::M0_64, carry = 0;
        for (int j = 0; j < W; j++) {
            uint128_t m = uint128_t(q) * word(p.limb, j) + t[i + j] + carry;
            t[i + j] = uint64_t(m);
            carry = uint64_t(m >> 64);
        }
        uint128_t m = uint128_t(t[i + W]) + carry + top;
        t[i + W] = uint64_t(m);
        top = uint64_t(m >> 64);
    }
    for (int i = 0; i < W; i++) set_word(r, i, t[W + i]);
    reduce_once<P>(r);
}

template <class P> inline void mont_mul(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    uint32_t t[2 * P::N];
    mul_wide<P::N>(t, a, b);
    mont_reduce<P>(r, t);
}

}  // namespace limbs_host
}  // namespace tandem
