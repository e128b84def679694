#pragma once
// Entries to fewer points by affine additions in rounds, before what is left of a bucket is added up in XYZZ coordinates: an
// affine addition with a shared inversion takes 5M + 1S instead of 8M + 2S (docs/design/msm.md).
//
// Entries are taken a chunk at a time. A round adds neighbours of the same bucket two by two, so that the n points of a bucket
// become (n + 1) / 2 slots; the last one of an odd number goes over as it is. A round is two launches in which every thread
// goes over the same slots: forward it multiplies the denominators of its additions and keeps each product before the next
// factor; then the last products are inverted, those of threads that share a scheduler together, and it goes backward, where the
// inverse of each denominator falls out (Montgomery's trick). Slots of a bucket lie side by side, so that slot j of a round is
// made of the slots 2j - s and 2j - s + 1 of the round before, where s is the number of slots before j that are made of one
// alone; there is a bit for each of those.
#include "pairs.cuh"
#include "scan.cuh"

namespace tandem {
namespace msm {

constexpr uint32_t MAX_ROUNDS = TANDEM_MSM_ROUNDS;
/// Entries of a chunk.
constexpr uint32_t MIN_CHUNK = 1u << 8, MAX_CHUNK = 1u << 30;
/// Blocks that count and place slots.
constexpr uint32_t PLACE_BLOCKS = 264;

/// Where the slots of a chunk are.
struct alignas(16) Placed {
    /// Buckets that have some of the chunk's entries lie between these; the first of the entries.
    uint32_t first_bucket, end_bucket, begin;
    /// Slots of each round; of round 0 the entries.
    uint32_t slots[MAX_ROUNDS + 1];
};

/// Scratch memory of the rounds of a chunk.
template <class Field> struct Rounds {
    /// How many rounds; entries of a chunk; words of a round's bits.
    uint32_t rounds, chunk, words;
    Placed* placed;
    /// Slots of the buckets of a block, round by round.
    uint32_t* part;
    /// For 32 slots, round by round: x has a bit for each that is made of one slot alone, y the number of those before.
    uint2* alone;
    /// Where the slots of a bucket begin in the last round.
    uint32_t* offsets;
    /// The slots of odd and of even rounds.
    AffineSoA<Field> slots[2];
    /// For each slot of a round the product of its thread's denominators before it; for each thread that of all.
    Field *before, *product;

    __device__ __forceinline__ AffineSoA<Field> round(uint32_t k) const { return k % 2 ? slots[0] : slots[1]; }
    /// Of round k of a chunk.
    __device__ __forceinline__ Sources<Field> sources(const tandem_msm_sum_args& a, uint32_t k) const {
        return {a, a.entries + placed->begin, round(k - 1), alone + size_t(k - 1) * words};
    }
};

/// What is left to be added up: the slots of the last round.
template <class Field> struct PartialPointSource {
    Rounds<Field> r;

    __device__ __forceinline__ const uint32_t* offsets() const { return r.offsets; }
    __device__ __forceinline__ uint32_t first_bucket() const { return r.placed->first_bucket; }
    __device__ __forceinline__ uint32_t end_bucket() const { return r.placed->end_bucket; }
    __device__ __forceinline__ uint2 range() const { return make_uint2(0, r.placed->slots[r.rounds]); }
    /// In order of bucket before those of the chunks that follow.
    __device__ __forceinline__ uint32_t idle_key() const { return range().y ? end_bucket() - 1 : NO_BUCKET; }
    __device__ __forceinline__ uint32_t name(uint32_t i) const { return i; }
    __device__ __forceinline__ Operand<Field> point(uint32_t i) const {
        const AffineSoA<Field> in = r.round(r.rounds);
        return {&in.x[i], &in.y[i], false};
    }
};

/// Where the entries of a bucket that go in rounds begin and end.
__device__ __forceinline__ uint2 of_bucket(const Chunk& chunk, const uint32_t* offsets, uint32_t b) {
    const uint32_t lo = max(offsets[b], chunk.middle), hi = min(offsets[b + 1], chunk.end);
    return make_uint2(lo, max(lo, hi));
}

/// The buckets of a chunk that a block of PLACE_BLOCKS takes.
struct BlockOfBuckets {
    uint32_t first, end, begin_all, end_all;

    __device__ __forceinline__ BlockOfBuckets(const Chunk& chunk, const uint32_t* offsets, uint32_t buckets) {
        begin_all = end_all = 0;
        if (chunk.middle < chunk.end) {
            begin_all = find_bucket(offsets, buckets, 0, chunk.middle);
            end_all = find_bucket(offsets, buckets, begin_all, chunk.end - 1) + 1;
        }
        const uint64_t count = end_all - begin_all;
        first = begin_all + uint32_t(count * blockIdx.x / PLACE_BLOCKS);
        end = begin_all + uint32_t(count * (blockIdx.x + 1) / PLACE_BLOCKS);
    }
};

__device__ __forceinline__ uint32_t slots_of(uint32_t entries, uint32_t round) {
    return (entries + (1u << round) - 1) >> round;
}

/// How many slots the buckets of each block have in each round. `part` is zero.
static __global__ void __launch_bounds__(1024)
    count_slots(const uint32_t* offsets, uint32_t buckets, uint32_t size, uint32_t number, uint32_t single,
                uint32_t rounds, uint32_t* part) {
    const Chunk chunk(offsets[buckets], size, number, single);
    const BlockOfBuckets block(chunk, offsets, buckets);
    uint32_t sum[MAX_ROUNDS + 1] = {};
    for (uint32_t b = block.first + threadIdx.x; b < block.end; b += blockDim.x) {
        const uint2 entries = of_bucket(chunk, offsets, b);
#pragma unroll
        for (uint32_t k = 1; k <= MAX_ROUNDS; k++) sum[k] += slots_of(entries.y - entries.x, k);
    }
    for (uint32_t k = 1; k <= rounds; k++) {
        const uint32_t of_warp = __reduce_add_sync(0xffffffffu, sum[k]);
        if (threadIdx.x % 32 == 0 && of_warp) atomicAdd(&part[k * PLACE_BLOCKS + blockIdx.x], of_warp);
    }
}

/// Where they are: `alone`, which is zero, `last_offsets` and `placed`.
static __global__ void __launch_bounds__(1024)
    place_slots(const uint32_t* offsets, uint32_t buckets, uint32_t size, uint32_t number, uint32_t single,
                uint32_t rounds, uint32_t words, const uint32_t* part, uint2* alone, uint32_t* last_offsets,
                Placed* placed) {
    const Chunk chunk(offsets[buckets], size, number, single);
    const BlockOfBuckets block(chunk, offsets, buckets);
    __shared__ uint32_t before[MAX_ROUNDS + 1];
    for (uint32_t k = 1; k <= rounds; k++) {
        uint32_t all, up_to;
        const uint32_t own = threadIdx.x < PLACE_BLOCKS ? part[k * PLACE_BLOCKS + threadIdx.x] : 0;
        block_exclusive_sum(threadIdx.x < blockIdx.x ? own : 0, &up_to);
        block_exclusive_sum(own, &all);
        if (threadIdx.x == 0) {
            before[k] = up_to;
            if (blockIdx.x == 0) placed->slots[k] = all;
            if (blockIdx.x == 0 && k == rounds) last_offsets[block.end_all] = all;
        }
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        placed->first_bucket = block.begin_all;
        placed->end_bucket = block.end_all;
        placed->begin = chunk.middle;
        placed->slots[0] = chunk.end - chunk.middle;
    }
    __syncthreads();
    for (uint32_t base = block.first; base < block.end; base += blockDim.x) {
        const uint32_t b = base + threadIdx.x;
        const uint2 entries = b < block.end ? of_bucket(chunk, offsets, b) : make_uint2(0, 0);
        uint32_t begin = entries.x - chunk.middle, count = entries.y - entries.x;
        for (uint32_t k = 1; k <= rounds; k++) {
            uint2* word = alone + size_t(k - 1) * words;
            const uint32_t slots = (count + 1) / 2;
            uint32_t total;
            const uint32_t at = before[k] + block_exclusive_sum(slots, &total);
            if (count % 2) atomicOr(&word[(at + slots - 1) / 32].x, 1u << (at + slots - 1) % 32);
            // In each word that begins among these slots; by all lanes where those are many.
            const uint32_t w = (at + 31) / 32, w_end = slots ? (at + slots - 1) / 32 + 1 : w, ones = 2 * at - begin;
            const bool many = w_end > w + 32;
            if (!many)
                for (uint32_t j = w; j < w_end; j++) word[j].y = ones;
            for (uint32_t left = __ballot_sync(0xffffffffu, many); left; left &= left - 1) {
                const int lane = __ffs(int(left)) - 1;
                const uint32_t from = __shfl_sync(0xffffffffu, w, lane), to = __shfl_sync(0xffffffffu, w_end, lane);
                const uint32_t value = __shfl_sync(0xffffffffu, ones, lane);
                for (uint32_t j = from + threadIdx.x % 32; j < to; j += 32) word[j].y = value;
            }
            if (k == rounds && b < block.end) last_offsets[b] = at;
            begin = at;
            count = slots;
            __syncthreads();
            if (threadIdx.x == 0) before[k] += total;
            __syncthreads();
        }
    }
}

/// Threads of a group and groups of a block, and the slots of a thread.
template <class F> struct RoundTuning {
    using Sum = typename AccumulateTuning<F>::Sum;
    using Field = typename Sum::Field;
    static constexpr int THREADS = Sum::THREADS, GROUPS = AccumulateTuning<F>::ROUND_GROUPS;
    using S = Slots<Field, THREADS>;
    template <bool FIRST, bool BACKWARD> using PairsOf = Pairs<S, Field, FIRST, BACKWARD>;
    template <bool FIRST, bool BACKWARD>
    static constexpr uint32_t COUNT = (BACKWARD ? AccumulateTuning<F>::SLOTS
                                       : FIRST  ? 1
                                                : 2) +
                                      PairsOf<FIRST, BACKWARD>::SLOTS;
    template <bool FIRST, bool BACKWARD> static constexpr size_t SHARED = COUNT<FIRST, BACKWARD> * S::STRIDE;

    static __device__ __forceinline__ Field sqr(uint32_t a) {
        if constexpr (Sum::SQUARES) return S::sqr(a);
        else return S::mul(a, a);
    }
};

/// Round k of a chunk, forward, by so many blocks, which take turns if there are fewer. An addition's denominator is the difference of the
/// x, of a doubling 2y; infinity has none.
template <class F, bool FIRST>
__global__ void __launch_bounds__(RoundTuning<F>::THREADS* RoundTuning<F>::GROUPS, 1)
    multiply_denominators(tandem_msm_sum_args a, Rounds<typename RoundTuning<F>::Field> r, uint32_t k,
                          uint32_t blocks) {
    using T = RoundTuning<F>;
    using Field = typename T::Field;
    using S = typename T::S;
    extern __shared__ uint4 memory[];
    const uint32_t own = S::own(memory, T::template COUNT<FIRST, false>), U = own, behind = U + S::STRIDE;
    const Sources<Field> from = r.sources(a, k);
    for (uint32_t block = blockIdx.x; block < blocks; block += gridDim.x) {
        // No slot may be overwritten that other lanes still read.
        __syncwarp();
        const ThreadSlots<false> share(r.placed->slots[k], block, blocks);
        typename T::template PairsOf<FIRST, false> pairs(from, share, behind);
        S::store(U, Field::one());
        for (uint32_t turn = 0; turn < share.turns; turn++) {
            // Lanes wait for each other as before, and those without an addition must not run apart from the others for the rest of the
            // loop.
            __syncwarp();
            pairs.next();
            if (!pairs.has_p() || !pairs.has_q()) continue;
            const Field px = pairs.px(), qx = pairs.qx();
            Field denominator = qx - px;
            if (denominator.is_zero()) {
                const Field y = pairs.py();
                if (!(y == pairs.qy()) || y.is_zero()) continue;
                denominator = y.dbl();
            } else if ((px.is_zero() && pairs.py().is_zero()) || (qx.is_zero() && pairs.qy().is_zero())) {
                continue;
            }
            store16(&r.before[share.slot(turn)], S::load(U));
            S::store(U, S::mul(denominator, U, FIRST ? pairs.place() : behind));
        }
        store16(&r.product[share.thread], S::load(U));
    }
    if (FIRST) wait_for_kernel_before();
}

/// Replaces a number of each thread of a block by its inverse, in its first slot; the second is overwritten. The threads of the first
/// group, a warp for each scheduler, invert the products of all groups.
template <class S, class Field> __device__ __forceinline__ void invert_all(uint32_t own, uint32_t group, Field number) {
    const uint32_t groups = blockDim.x / S::THREADS, P = own + S::STRIDE;
    S::store(own, number);
    __syncthreads();
    if (threadIdx.x < S::THREADS) {
        S::store(P, S::load(own));
        for (uint32_t g = 1; g < groups; g++) S::store(P + g * group, S::mul(P + (g - 1) * group, own + g * group));
        S::store(P, S::load(P + (groups - 1) * group).inverse());
        for (uint32_t g = groups - 1; g > 0; g--) {
            const Field before = g > 1 ? S::load(P + (g - 1) * group) : S::load(own);
            S::store(P + g * group, before);
            const Field inverse = S::mul(P, P + g * group);
            S::store(P, S::mul(P, own + g * group));
            S::store(own + g * group, inverse);
        }
        S::store(own, S::load(P));
    }
    __syncthreads();
}

/// Backward: takes the same slots for additions as multiply_denominators, in the opposite order, and writes all.
template <class F, bool FIRST>
__global__ void __launch_bounds__(RoundTuning<F>::THREADS* RoundTuning<F>::GROUPS, 1)
    add_pairs(tandem_msm_sum_args a, Rounds<typename RoundTuning<F>::Field> r, uint32_t k) {
    using T = RoundTuning<F>;
    using Field = typename T::Field;
    using S = typename T::S;
    extern __shared__ uint4 memory[];
    const uint32_t own = S::own(memory, T::template COUNT<FIRST, true>);
    // The inverse of the product of all denominators not yet used; the denominator; q.y - p.y, then the slope; p.x; p.y.
    const uint32_t U = own, B = U + S::STRIDE, DY = B + S::STRIDE, X = DY + S::STRIDE, Y = X + S::STRIDE;
    // For factors from registers, where products are functions: a place of their own, or that of y, which waits until then.
    constexpr bool OWN_PLACE = AccumulateTuning<F>::SLOTS == 6, Y_WAITS = S::CALLED && !OWN_PLACE;
    const uint32_t A = OWN_PLACE ? Y + S::STRIDE : Y;
    const ThreadSlots<true> share(r.placed->slots[k], blockIdx.x, gridDim.x);
    invert_all<S>(own, T::template COUNT<FIRST, true> * S::STRIDE, load16(&r.product[share.thread]));
    if (share.turns == 0) return;
    const Sources<Field> from = r.sources(a, k);
    typename T::template PairsOf<FIRST, true> pairs(from, share, own);
    const AffineSoA<Field> out = r.round(k);
    const auto put = [&](uint32_t i, Affine<Field> p) {
        store16(&out.x[i], p.x);
        store16(&out.y[i], p.y);
    };
    for (uint32_t turn = 0; turn < share.turns; turn++) {
        __syncwarp();
        pairs.next();
        const uint32_t i = share.slot(turn);
        if (i == share.NO_SLOT) continue;
        if (!pairs.has_p() || !pairs.has_q()) {
            // One of two, or none.
            Affine<Field> one = Affine<Field>::infinity();
            if (pairs.has_p()) one = {pairs.px(), pairs.py()};
            if (pairs.has_q()) one = {pairs.qx(), pairs.qy()};
            put(i, one);
            continue;
        }
        // All are asked for before the first is used.
        const Field px = pairs.px(), qx = pairs.qx(), py = pairs.py(), qy = pairs.qy(), before = load16(&r.before[i]);
        const bool no_p = px.is_zero() && py.is_zero(), no_q = qx.is_zero() && qy.is_zero();
        if (no_p || no_q) {
            put(i, no_p ? Affine<Field>{qx, qy} : Affine<Field>{px, py});
            continue;
        }
        Field denominator = qx - px;
        const bool twice = denominator.is_zero();
        if (twice) {
            if (!(py == qy) || py.is_zero()) {
                put(i, Affine<Field>::infinity());
                continue;
            }
            denominator = py.dbl();
        }
        S::store(B, denominator);
        if (OWN_PLACE) S::store(A, before);
        S::store(X, px);
        if (!Y_WAITS) S::store(Y, py);
        S::store(DY, qy - py);
        if (twice) {
            const Field square = S::mul(X, X);
            S::store(DY, square.dbl() + square);  // 3 x^2 over 2 y
        }
        const Field inverse = OWN_PLACE ? S::mul(A, U) : S::mul(before, U, A);
        S::store(DY, S::mul(inverse, DY, A));
        if (Y_WAITS) S::store(Y, py);
        S::store(U, S::mul(U, B));
        // Slope^2 - p.x - q.x, with q.x = p.x + B, or p.x.
        if (twice) S::store(B, Field::zero());
        const Field x = T::sqr(DY) - S::load(X).dbl() - S::load(B);
        S::store(B, S::load(X) - x);
        store16(&out.x[i], x);
        store16(&out.y[i], S::mul(DY, B) - S::load(Y));
    }
}

}  // namespace msm
}  // namespace tandem
