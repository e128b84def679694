#pragma once
// The sum that a thread adds points to. Numbers that wait lie in shared memory, so that more warps find registers, and are
// read again for each use. In all fields but that of eight limbs all of them do, and products are functions that take the
// places of their factors: what is passed by value is moved from register to register, which keeps the multiplier's pipe
// busy for a tenth of the time.
// The functions are few and small, so that the instruction cache holds them.
#include "outlined_field_ops.cuh"

namespace tandem {
namespace msm {

/// Numbers of a group of threads: slot after slot, in pieces of 16 bytes that lie side by side. Groups of a block lie one after
/// the other, so that a block may have any number of them.
template <class F, int Threads> struct Slots {
    static constexpr int PIECES = sizeof(F) / 16, THREADS = Threads;
    static constexpr uint32_t PIECE_STRIDE = Threads * 16, STRIDE = PIECES * PIECE_STRIDE;

    /// In functions carries are kept by IMAD.X, on the multiplier's pipe, where ptxas takes IADD3.X inline (docs/design/msm.md); but five products
    /// inline are too long in all fields but that of eight limbs.
    static constexpr bool CALLED = PIECES > 2;

    /// Where the thread's first slot is, of `count`.
    static __device__ __forceinline__ uint32_t own(uint4* shared, uint32_t count) {
        return uint32_t(__cvta_generic_to_shared(shared)) + threadIdx.x / Threads * count * STRIDE +
               threadIdx.x % Threads * 16;
    }
    template <class T = F> static __device__ __forceinline__ T load(uint32_t at) {
        T value;
        uint4* to = reinterpret_cast<uint4*>(&value);
#pragma unroll
        for (int k = 0; k < int(sizeof(T) / 16); k++)
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(to[k].x), "=r"(to[k].y), "=r"(to[k].z), "=r"(to[k].w)
                         : "r"(at + k * PIECE_STRIDE));
        return value;
    }
    static __device__ __forceinline__ void store(uint32_t at, F value) {
        const uint4* from = reinterpret_cast<const uint4*>(&value);
#pragma unroll
        for (int k = 0; k < PIECES; k++)
            asm volatile("st.shared.v4.u32 [%4], {%0, %1, %2, %3};" ::"r"(from[k].x), "r"(from[k].y), "r"(from[k].z),
                         "r"(from[k].w), "r"(at + k * PIECE_STRIDE));
    }
    static __device__ __forceinline__ F mul(uint32_t a, uint32_t b) {
        if constexpr (CALLED) return called_mul(a, b);
        else return product(F(), a, b);
    }
    /// The product with a first factor that lies in registers; where products are functions, it goes to `place` before.
    static __device__ __forceinline__ F mul(F a, uint32_t b, uint32_t place) {
        if constexpr (!CALLED) return a * load(b);
        store(place, a);
        return mul(place, b);
    }
    static __device__ __forceinline__ F sqr(uint32_t a) {
        if constexpr (CALLED) return called_sqr(a);
        else return load(a).sqr();
    }
    /// a * b - c * d.
    static __device__ __noinline__ F mul_sub(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
        using W = typename F::WideType;
        return (W::mul(load(a), load(b)) - W::mul(load(c), load(d))).reduce();
    }

  private:
    static __device__ __noinline__ F called_mul(uint32_t a, uint32_t b) { return product(F(), a, b); }
    static __device__ __noinline__ F called_sqr(uint32_t a) { return load(a).sqr(); }
    template <class P> static __device__ __forceinline__ Fp<P> product(Fp<P>, uint32_t a, uint32_t b) {
        return load(a) * load(b);
    }
    /// As Wide2::mul, with parts read when they are needed.
    template <class P> static __device__ __forceinline__ Fp2<P> product(Fp2<P>, uint32_t a, uint32_t b) {
        using Base = Fp<P>;
        constexpr uint32_t PART = STRIDE / 2;
        const Wide<P> v0 = Wide<P>::mul(load<Base>(a), load<Base>(b));
        const Wide<P> v1 = Wide<P>::mul(load<Base>(a + PART), load<Base>(b + PART));
        const Base a_sum = Base::add_lazy(load<Base>(a), load<Base>(a + PART));
        const Base b_sum = Base::add_lazy(load<Base>(b), load<Base>(b + PART));
        const Wide<P> cross = Wide<P>::sub_exact(Wide<P>::sub_exact(Wide<P>::mul(a_sum, b_sum), v0), v1);
        return {(v0 - v1).reduce(), cross.reduce()};
    }
};

/// A sum in XYZZ coordinates of which x and y lie in registers, zz and zzz in shared memory.
template <class F, int Threads> struct RegisterSum {
    using Field = F;
    using S = Slots<F, Threads>;
    static constexpr int THREADS = Threads;
    static constexpr bool SQUARES = true;
    static constexpr uint32_t COUNT = 2;
    static constexpr size_t BYTES = COUNT * S::STRIDE;
    F x, y;
    bool empty = true;
    uint32_t own;

    __device__ __forceinline__ explicit RegisterSum(uint4* shared)
        : x(F::zero()), y(F::zero()), own(S::own(shared, COUNT)) {}

    /// this += +-(*from_x, *from_y), for any two points (madd-2008-s, as in curve.cuh).
    __device__ __forceinline__ void add(const F* from_x, const F* from_y, bool negative) {
        Affine<F> p{load16_readonly(from_x), load16_readonly(from_y)};
        if (p.is_infinity()) return;
        if (negative) p.y = p.y.neg();
        if (empty) {
            set({p.x, p.y, F::one(), F::one()});
            return;
        }
        const F dx = p.x * load(0) - x;
        const F dy = p.y * load(1) - y;
        if (dx.is_zero()) {
            if (dy.is_zero()) set(Xyzz<F>::dbl_affine(p));
            else empty = true;
            return;
        }
        const F pp = dx.sqr();
        store(0, load(0) * pp);
        const F ppp = dx * pp;
        store(1, load(1) * ppp);
        const F q = x * pp;
        x = dy.sqr() - ppp - q.dbl();
        y = mul_sub(dy, q - x, y, ppp);
    }
    /// The sum, which is then infinity again.
    __device__ __forceinline__ Xyzz<F> take() {
        if (empty) return Xyzz<F>::infinity();
        empty = true;
        return {x, y, load(0), load(1)};
    }

  private:
    __device__ __forceinline__ void set(Xyzz<F> p) {
        x = p.x;
        y = p.y;
        store(0, p.zz);
        store(1, p.zzz);
        empty = false;
    }
    __device__ __forceinline__ F load(int which) const { return S::load(own + which * S::STRIDE); }
    __device__ __forceinline__ void store(int which, F value) const { S::store(own + which * S::STRIDE, value); }
};

/// One that lies in shared memory. `Squares`: whether squares have a function of their own beside that of products; `Merged`:
/// whether the difference of two products has.
template <class F, int Threads, bool Squares, bool Merged> struct SlotSum {
    using Field = F;
    using S = Slots<F, Threads>;
    static constexpr int THREADS = Threads;
    static constexpr bool SQUARES = Squares;
    /// The sum, and two or three for the addition.
    enum Slot { X, Y, ZZ, ZZZ, A, B, C };
    static constexpr int COUNT = Merged ? C + 1 : C;
    static constexpr size_t BYTES = COUNT * S::STRIDE;
    uint32_t own;
    bool empty = true;

    __device__ __forceinline__ explicit SlotSum(uint4* shared) : own(S::own(shared, COUNT)) {}

    /// this += +-(*from_x, *from_y), for any two points (madd-2008-s, as in curve.cuh).
    __device__ __forceinline__ void add(const F* from_x, const F* from_y, bool negative) {
        const auto y_of = [&] {
            const F y = load16_readonly(from_y);
            return negative ? y.neg() : y;
        };
        const F px = load16_readonly(from_x);
        if (px.is_zero() && load16_readonly(from_y).is_zero()) return;
        if (empty) {
            empty = false;
            set({px, y_of(), F::one(), F::one()});
            return;
        }
        put(A, px);
        const F dx = mul(A, ZZ) - get(X);
        put(A, dx);
        if (dx.is_zero()) {
            put(B, y_of());
            if (mul(B, ZZZ) == get(Y)) set_twice(px, y_of());
            else empty = true;
            return;
        }
        put(B, sqr(A));  // pp
        put(ZZ, mul(ZZ, B));
        put(A, mul(A, B));  // ppp
        put(X, mul(X, B));  // q
        put(B, y_of());
        put(B, mul(B, ZZZ) - get(Y));  // dy
        put(ZZZ, mul(ZZZ, A));
        if constexpr (!Merged) put(Y, mul(Y, A));
        const F x = sqr(B) - get(A) - get(X).dbl();
        put(Merged ? C : A, get(X) - x);
        put(X, x);
        if constexpr (Merged) put(Y, S::mul_sub(at(B), at(C), at(Y), at(A)));
        else put(Y, mul(B, A) - get(Y));
    }
    /// The sum, which is then infinity again.
    __device__ __forceinline__ Xyzz<F> take() {
        if (empty) return Xyzz<F>::infinity();
        empty = true;
        return {get(X), get(Y), get(ZZ), get(ZZZ)};
    }

  private:
    __device__ __forceinline__ uint32_t at(Slot slot) const { return own + slot * S::STRIDE; }
    __device__ __forceinline__ F get(Slot slot) const { return S::load(at(slot)); }
    __device__ __forceinline__ void put(Slot slot, F value) const { S::store(at(slot), value); }
    __device__ __forceinline__ F mul(Slot a, Slot b) const { return S::mul(at(a), at(b)); }
    __device__ __forceinline__ F sqr(Slot a) const {
        if constexpr (Squares) return S::sqr(at(a));
        else return S::mul(at(a), at(a));
    }
    __device__ __forceinline__ void set(Xyzz<F> p) const {
        put(X, p.x);
        put(Y, p.y);
        put(ZZ, p.zz);
        put(ZZZ, p.zzz);
    }
    /// this = 2p. Rare.
    __device__ __noinline__ void set_twice(F x, F y) const {
        const Xyzz<Called<F>> p = Xyzz<Called<F>>::dbl_affine({Called<F>{x}, Called<F>{y}});
        set({p.x.value, p.y.value, p.zz.value, p.zzz.value});
    }
};

}  // namespace msm
}  // namespace tandem
