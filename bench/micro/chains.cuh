#pragma once
// Chains of one instruction, or of two kinds side by side: what a warp gets done in a given time, by the clock of its multiprocessor and by the GPU's;
// and the same on the host, which checks what came out.
#include <cmath>
#include <cstring>

#include "common.cuh"

namespace chains {

/// A step changes a chain's number by its neighbour's and a factor, so that nothing can be computed before the loop. Eight chains a thread and two warps
/// a scheduler hide an instruction's latency. The loop's own instructions are 3 of 195.
constexpr int CHAINS = 8, UNROLLED = 24, TURNS = 4;
/// Instructions of a kind between two looks at the clock.
constexpr int CHUNK = TURNS * UNROLLED * CHAINS;
/// A kernel ends even if the clock stands still.
constexpr uint32_t MOST_CHUNKS = 1 << 20;

/// What an instruction does, on the device and on the host: the next x, from x, its neighbour and the factor. `nvdisasm` shows which one it became.
#define INSTRUCTION(type, label, word, assembly, x_kind, factor_operand, meaning)                       \
    struct type {                                                                                       \
        using Word = word;                                                                              \
        static constexpr const char* NAME = label;                                                      \
        static __device__ __forceinline__ void step(Word& x, Word next, [[maybe_unused]] Word factor) { \
            asm volatile(assembly : "+" x_kind(x) : x_kind(next) factor_operand);                       \
        }                                                                                               \
        static Word step_on_host(Word x, Word next, [[maybe_unused]] Word factor) { return meaning; }   \
    };
#define WITH(operand) , operand
INSTRUCTION(ImadLo, "IMAD, three registers", uint32_t, "mad.lo.u32 %0, %1, %2, %0;", "r", WITH("r"(factor)),
            next* factor + x)
INSTRUCTION(ImadHi, "IMAD.HI, three registers", uint32_t, "mad.hi.u32 %0, %1, %2, %0;", "r", WITH("r"(factor)),
            uint32_t(uint64_t(next) * factor >> 32) + x)
INSTRUCTION(Iadd3, "IADD3, three registers", uint32_t, "{.reg .u32 t; add.u32 t, %1, %2; add.u32 %0, t, %0;}", "r",
            WITH("r"(factor)), next + factor + x)
INSTRUCTION(Iadd3Fixed, "IADD3, two and an immediate", uint32_t,
            "{.reg .u32 t; add.u32 t, %0, %1; add.u32 %0, t, 0x9e3779b9;}", "r", , next + 0x9e3779b9u + x)
INSTRUCTION(Lop3, "LOP3, three registers", uint32_t, "lop3.b32 %0, %1, %2, %0, 0x6a;", "r", WITH("r"(factor)),
            (next & factor) ^ x)
INSTRUCTION(Lop3Fixed, "LOP3, two and an immediate", uint32_t, "lop3.b32 %0, %1, 0x9e3779b9, %0, 0x6a;", "r", ,
            (next & 0x9e3779b9u) ^ x)
INSTRUCTION(Shf, "SHF, two and an immediate", uint32_t, "shf.l.wrap.b32 %0, %1, %0, 7;", "r", , x << 7 | next >> 25)
INSTRUCTION(Dfma, "DFMA, three registers", double, "fma.rn.f64 %0, %1, %2, %0;", "d", WITH("d"(factor)),
            std::fma(next, factor, x))
// 1.625 * 2^-22: an immediate is the upper half of a double.
INSTRUCTION(DfmaFixed, "DFMA, two and an immediate", double, "fma.rn.f64 %0, %1, 0d3E9A000000000000, %0;", "d", ,
            std::fma(next, 0x1.ap-22, x))
#undef WITH
#undef INSTRUCTION

struct ImadWide {
    using Word = uint64_t;
    static constexpr const char* NAME = "IMAD.WIDE, three registers";
    /// Of mad.wide.u32 ptxas makes a product and two additions where it thinks that the lower word is waited for; not of the two halves.
    static __device__ __forceinline__ void step(Word& x, Word next, Word factor) {
        uint32_t low = uint32_t(x), high = uint32_t(x >> 32);
        asm volatile("mad.lo.cc.u32 %0, %2, %3, %0; madc.hi.u32 %1, %2, %3, %1;"
                     : "+r"(low), "+r"(high)
                     : "r"(uint32_t(next)), "r"(uint32_t(factor)));
        x = uint64_t(high) << 32 | low;
    }
    static Word step_on_host(Word x, Word next, Word factor) { return uint64_t(uint32_t(next)) * uint32_t(factor) + x; }
};
/// For an instruction alone.
struct Nothing {
    using Word = uint32_t;
    static constexpr const char* NAME = "nothing";
    static __device__ __forceinline__ void step(Word&, Word, Word) {}
    static Word step_on_host(Word x, Word, Word) { return x; }
};

/// Any integer; a double from 1 to 2.
template <class Word> TANDEM_HD Word begin_of(uint64_t seed) { return Word(mix(seed)); }
template <> TANDEM_HD double begin_of<double>(uint64_t seed) { return 1 + double(mix(seed) >> 12) * 0x1p-52; }
/// So small for doubles that numbers do not outgrow them.
template <class Word> TANDEM_HD Word factor_of(uint64_t seed) { return begin_of<Word>(seed); }
template <> TANDEM_HD double factor_of<double>(uint64_t seed) { return begin_of<double>(seed) * 0x1p-22; }

/// The chains of one thread.
template <class Op> struct Numbers {
    typename Op::Word x[CHAINS], factor;
    TANDEM_HD explicit Numbers(uint64_t thread) {
        TANDEM_UNROLL for (int j = 0; j < CHAINS; j++) x[j] = begin_of<typename Op::Word>(thread * 16 + j);
        factor = factor_of<typename Op::Word>(thread * 16 + CHAINS);
    }
    TANDEM_HD uint64_t sum() const {
        uint64_t sum = 0;
        TANDEM_UNROLL for (int j = 0; j < CHAINS; j++) {
            uint64_t bits = 0;
            memcpy(&bits, &x[j], sizeof x[j]);
            sum = sum * 0x9e3779b97f4a7c15ull + bits;
        }
        return sum;
    }
};

/// What a warp did: from when to when, by the multiprocessor's clock and by nanoseconds of the GPU.
struct Record {
    int64_t begun, ended;
    uint64_t from, to;
    uint64_t chunks;
    double clocks() const { return double(ended - begun); }
    double nanoseconds() const { return double(to - from); }
};

__device__ __forceinline__ uint64_t global_ns() {
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
    return ns;
}

/// Steps of A and B in turns, B_STEPS of B behind each of A, for so many clocks. All lanes of a warp call it; its first one writes the record.
template <class A, class B = Nothing, int B_STEPS = 1> __device__ __forceinline__ void work(int64_t clocks,
                                                                                            Record* record,
                                                                                            uint64_t* results) {
    const uint64_t thread = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    Numbers<A> a(thread);
    Numbers<B> b(thread);
    const uint64_t from = global_ns();
    const int64_t begun = clock64();
    int64_t ended;
    uint32_t chunks = 0;
    do {
#pragma unroll 1
        for (int turn = 0; turn < TURNS; turn++)
#pragma unroll
            for (int i = 0; i < UNROLLED; i++)
#pragma unroll
                for (int j = 0; j < CHAINS; j++) {
                    A::step(a.x[j], a.x[(j + 1) % CHAINS], a.factor);
#pragma unroll
                    for (int k = B_STEPS * j; k < B_STEPS * (j + 1); k++)
                        B::step(b.x[k % CHAINS], b.x[(k + 1) % CHAINS], b.factor);
                }
        chunks++;
        ended = clock64();
    } while (__any_sync(~0u, ended - begun < clocks) && chunks < MOST_CHUNKS);
    const uint64_t to = global_ns();
    results[2 * thread] = a.sum();
    results[2 * thread + 1] = b.sum();
    if (threadIdx.x % 32 == 0) *record = {begun, ended, from, to, chunks};
}

/// A thread's sum after so many chunks of CHUNK steps.
template <class Op> uint64_t expected(uint64_t thread, uint64_t chunks) {
    Numbers<Op> numbers(thread);
    for (uint64_t i = 0; i < chunks * (CHUNK / CHAINS); i++)
        for (int j = 0; j < CHAINS; j++)
            numbers.x[j] = Op::step_on_host(numbers.x[j], numbers.x[(j + 1) % CHAINS], numbers.factor);
    return numbers.sum();
}

}  // namespace chains
