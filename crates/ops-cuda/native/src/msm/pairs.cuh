#pragma once
// Where the points of a round's additions come from. Points of entries lie anywhere in a table. Forward, the first round does little
// but read them, so that lanes beside each other fetch what one of them needs, 16 bytes each, to shared memory (docs/design/msm.md).
#include "accumulate.cuh"

namespace tandem {
namespace msm {

/// The slots of a thread: turn by turn, each turn's next to those of its neighbours. BACKWARD: the last turn first.
template <bool BACKWARD> struct ThreadSlots {
    uint32_t slots, thread, threads, turns;

    /// Of a thread of a block of so many. `turns` is the same for all lanes of a warp.
    __device__ __forceinline__ ThreadSlots(uint32_t count, uint32_t block, uint32_t blocks)
        : slots(count), thread(block * blockDim.x + threadIdx.x), threads(blocks * blockDim.x) {
        const uint32_t first = thread / 32 * 32;
        turns = first < slots ? (slots - 1 - first) / threads + 1 : 0;
    }
    /// The slot of a turn; NO_SLOT if it has none.
    __device__ __forceinline__ uint32_t slot(uint32_t turn) const {
        if (turn >= turns) return NO_SLOT;
        const uint32_t j = (BACKWARD ? turns - 1 - turn : turn) * threads + thread;
        return j < slots ? j : NO_SLOT;
    }
    static constexpr uint32_t NO_SLOT = 0xffffffffu;
};

/// A slot of the round before, as if it were a row.
__device__ __forceinline__ RowRef pick_slot(uint32_t slot, bool there) { return {there ? slot << 1 : RowRef::NONE}; }

/// Fetches PIECES of 16 bytes of the row that each lane of a warp picked, in the background. Rows are ROW bytes apart; `to` is the
/// place of the warp's first lane.
template <class S, uint32_t PIECES, uint32_t ROW>
__device__ __forceinline__ void fetch(const void* rows, RowRef picked, uint32_t to) {
    const uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (uint32_t step = 0; step < PIECES; step++) {
        const uint32_t item = step * 32 + lane, of = item / PIECES, piece = item % PIECES;
        const RowRef other{__shfl_sync(0xffffffffu, picked.row_and_sign, int(of))};
        if (!other.none())
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + of * 16 + piece * S::PIECE_STRIDE),
                         "l"(static_cast<const char*>(rows) + (uint64_t(other.row()) * ROW + piece * 16))
                         : "memory");
    }
}

/// Points whose x and y lie apart: half of the additions' work needs x only.
template <class Field> struct AffineSoA {
    Field *x, *y;
};

/// What a round's pairs are made of: entries, or the slots of the round before.
template <class Field> struct Sources {
    const tandem_msm_sum_args& a;
    const uint32_t* entries;
    AffineSoA<Field> in;
    const uint2* alone;
};

/// The pairs of a thread, turn by turn. Forward, the first round's are fetched: a pair is on its way while the one before is in work. All
/// others are read when they are asked for.
template <class S, class Field, bool FIRST, bool BACKWARD> class Pairs {
    static constexpr bool FETCHED = FIRST && !BACKWARD;

  public:
    /// Slots that a thread needs for what is fetched: two sets of p.x and q.x.
    static constexpr uint32_t SLOTS = FETCHED ? 4 : 0;

    /// `own` is where the thread's first slot is.
    __device__ __forceinline__ Pairs(const Sources<Field>& from, const ThreadSlots<BACKWARD>& share, uint32_t own)
        : from_(from), share_(share), own_(own) {
        look(0);
        pick();
        if (FETCHED) advance();
    }
    /// Makes the pair of the next turn the current one. To be called by whole warps.
    __device__ __forceinline__ void next() {
        if (!FETCHED) advance();
        p_ = next_p_;
        q_ = next_q_;
        if (!FETCHED) return;
        advance();
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncwarp();
    }
    __device__ __forceinline__ bool has_p() const { return !p_.none(); }
    __device__ __forceinline__ bool has_q() const { return !q_.none(); }
    /// Where p.x was fetched to, which may be overwritten when it has been taken.
    __device__ __forceinline__ uint32_t place() const { return own_ + set_; }
    __device__ __forceinline__ Field px() const { return FETCHED ? S::load(own_ + set_) : x(p_); }
    __device__ __forceinline__ Field qx() const { return FETCHED ? S::load(own_ + set_ + S::STRIDE) : x(q_); }
    __device__ __forceinline__ Field py() const { return y(p_); }
    __device__ __forceinline__ Field qy() const { return y(q_); }

  private:
    static constexpr uint32_t NO_SLOT = ThreadSlots<BACKWARD>::NO_SLOT;

    __device__ __forceinline__ const Affine<Field>* table() const {
        return reinterpret_cast<const Affine<Field>*>(from_.a.table);
    }
    __device__ __forceinline__ Field x(RowRef p) const {
        return load16_readonly(FIRST ? &table()[p.row()].x : &from_.in.x[p.row()]);
    }
    __device__ __forceinline__ Field y(RowRef p) const {
        const Field y = load16_readonly(FIRST ? &table()[p.row()].y : &from_.in.y[p.row()]);
        return FIRST && p.negative() ? y.neg() : y;
    }
    // A word of `alone` is read before it is needed, entries a turn later, points in the turn after that, or one earlier if they are fetched.
    __device__ __forceinline__ void look(uint32_t turn) {
        slot_ = share_.slot(turn);
        if (slot_ != NO_SLOT) word_ = from_.alone[slot_ / 32];
    }
    __device__ __forceinline__ void pick() {
        // Slot j is made of the slots 2j - s and 2j - s + 1, or of the first alone; s slots before it are made of one alone.
        const uint32_t bit = 1u << slot_ % 32, at = 2 * slot_ - word_.y - __popc(word_.x & (bit - 1));
        some_ = slot_ != NO_SLOT;
        two_ = some_ && !(word_.x & bit);
        if (FIRST && some_) source_p_ = from_.entries[at];
        if (FIRST && two_) source_q_ = from_.entries[at + 1];
        if (!FIRST) source_p_ = at;
        look(++turn_);
    }
    __device__ __forceinline__ void advance() {
        next_p_ = FIRST ? pick_row(from_.a, source_p_, some_) : pick_slot(source_p_, some_);
        next_q_ = FIRST ? pick_row(from_.a, source_q_, two_) : pick_slot(source_p_ + 1, two_);
        if (FETCHED) {
            const uint32_t to = own_ - threadIdx.x % 32 * 16 + set_;
            fetch<S, S::PIECES, sizeof(Affine<Field>)>(table(), next_p_, to);
            fetch<S, S::PIECES, sizeof(Affine<Field>)>(table(), next_q_, to + S::STRIDE);
            asm volatile("cp.async.commit_group;" ::: "memory");
            set_ = 2 * S::STRIDE - set_;
        }
        pick();
    }

    const Sources<Field>& from_;
    const ThreadSlots<BACKWARD>& share_;
    /// `set_`: of the current pair, and where the next one goes when it is asked for.
    uint32_t own_, set_ = 0, turn_ = 0, slot_, source_p_ = 0, source_q_ = 0;
    uint2 word_{};
    bool some_ = false, two_ = false;
    RowRef next_p_{}, next_q_{}, p_{}, q_{};
};

}  // namespace msm
}  // namespace tandem
