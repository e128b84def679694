#pragma once
// An array that lies on all PEs of a team and is indexed from anywhere.
//
// Blocks of `block` elements are dealt to the PEs in turn: a block distribution has one block for each PE
// (block_for), a cyclic one has blocks of one element, and anything between is block-cyclic. Element i is in block
// i / block, which PE (i / block) % size has as its block number i / block / size.
#include "transfer.cuh"

namespace tandem {
namespace fabric {
namespace detail {

/// Division by a number that is known beforehand: a multiplication and a correction.
struct Divisor {
    uint64_t by;
    uint64_t reciprocal;

    Divisor() = default;
    // With m = floor((2^64 - 1) / by) is x * m / 2^64 at most x / 2^64 < 1 below x / by, so its floor at most 1 below.
    explicit TANDEM_FABRIC_FN Divisor(uint64_t by) : by(by), reciprocal(~uint64_t(0) / by) {}

    TANDEM_FABRIC_FN uint64_t divide(uint64_t x, uint64_t& rest) const {
#if defined(__CUDA_ARCH__)
        uint64_t quotient = __umul64hi(x, reciprocal);
#else
        uint64_t quotient = uint64_t((static_cast<unsigned __int128>(x) * reciprocal) >> 64);
#endif
        rest = x - quotient * by;
        if (rest >= by) {
            rest -= by;
            quotient++;
        }
        return quotient;
    }
};

}  // namespace detail

/// The block of a block distribution: as even as can be, and at least one element.
TANDEM_FABRIC_FN uint64_t block_for(uint64_t length, uint32_t pes) {
    const uint64_t block = length / pes + (length % pes != 0);
    return block == 0 ? 1 : block;
}

/// Elements that every PE needs room for.
TANDEM_FABRIC_FN uint64_t part_for(uint64_t length, uint64_t block, uint32_t pes) {
    const uint64_t blocks = length / block + (length % block != 0);
    return (blocks / pes + (blocks % pes != 0)) * block;
}

/// Passed to kernels by value, as each PE sees it. A copy is the same array.
template <class T> class GlobalArray {
  public:
    /// `part` is this PE's part, in symmetric memory at the same offset of every PE, with room for
    /// part_for(length, block, team.size) elements. `block` is not 0.
    TANDEM_FABRIC_FN GlobalArray(const tandem_team& team, T* part, uint64_t length, uint64_t block)
        : team_(team), part_(part), length_(length), block_(block), pes_(team.size) {}

    TANDEM_FABRIC_FN const tandem_team& team() const { return team_; }
    TANDEM_FABRIC_FN uint64_t length() const { return length_; }
    TANDEM_FABRIC_FN uint64_t block() const { return block_.by; }

    /// The PE that has element i, and its index in that PE's part.
    TANDEM_FABRIC_FN uint32_t owner(uint64_t i, uint64_t& place) const {
        uint64_t in_block, pe;
        const uint64_t block = block_.divide(i, in_block);
        place = pes_.divide(block, pe) * block_.by + in_block;
        return uint32_t(pe);
    }

    /// Element i, wherever it is. Reads and writes are ordinary ones: two PEs that touch the same element must be
    /// ordered by a barrier or a signal between them. Past the end, with TANDEM_FABRIC_CHECKS: a fault, and a dummy.
    TANDEM_FABRIC_FN T& operator[](uint64_t i) const {
        uint64_t place;
        const uint32_t pe = owner(i, place);
        if (CHECKS && i >= length_) {
            detail::report(team_, TANDEM_FAULT_BOUNDS, pe, i, length_, sizeof(T));
            return dummy();
        }
        T* there = detail::reach(team_, part_ + place, 1, pe);
        return there == nullptr ? dummy() : *there;
    }

    /// Elements that this PE has.
    TANDEM_FABRIC_FN uint64_t local_length() const {
        uint64_t in_block, before;
        const uint64_t full = block_.divide(length_, in_block);
        const uint64_t rounds = pes_.divide(full, before);
        const uint64_t rest = team_.me < before ? block_.by : team_.me == before ? in_block : 0;
        return rounds * block_.by + rest;
    }

    /// This PE's part.
    TANDEM_FABRIC_FN T* part() const { return part_; }

    /// Which element is at `place` of this PE's part.
    TANDEM_FABRIC_FN uint64_t index_of(uint64_t place) const {
        uint64_t in_block;
        const uint64_t block = block_.divide(place, in_block);
        return (block * team_.size + team_.me) * block_.by + in_block;
    }

  private:
    static TANDEM_FABRIC_FN T& dummy() {
#if defined(__CUDA_ARCH__)
        static __device__ uint4 memory[(sizeof(T) + 15) / 16];
#else
        alignas(16) static thread_local unsigned char memory[sizeof(T)];
#endif
        return *reinterpret_cast<T*>(memory);
    }

    tandem_team team_;
    T* part_;
    uint64_t length_;
    detail::Divisor block_;
    detail::Divisor pes_;
};

/// Calls f(i, element) for every index that lives here, for one of `workers` that divide them.
#if defined(__CUDACC__)
// `f` may be for the device alone, where a kernel calls this.
#pragma nv_exec_check_disable
#endif
template <class T, class F>
TANDEM_FABRIC_FN void forall_local(const GlobalArray<T>& array, uint64_t worker, uint64_t workers, F f) {
    const uint64_t here = array.local_length();
    for (uint64_t place = worker; place < here; place += workers) f(array.index_of(place), array.part()[place]);
}

/// Copies this PE's part of `to` from `from`, element by element, for one of `workers`: for distributions that cut each
/// other into short pieces. Long pieces are better copied whole.
template <class T> TANDEM_FABRIC_FN void assign_local(const GlobalArray<T>& to, const GlobalArray<T>& from,
                                                      uint64_t worker, uint64_t workers) {
    constexpr uint32_t IN_FLIGHT = 8;
    const uint64_t here = to.local_length();
    uint64_t place = worker;
    for (; place + (IN_FLIGHT - 1) * workers < here; place += IN_FLIGHT * workers) {
        T elements[IN_FLIGHT];
        for (uint32_t k = 0; k < IN_FLIGHT; k++) elements[k] = from[to.index_of(place + k * workers)];
        for (uint32_t k = 0; k < IN_FLIGHT; k++) to.part()[place + k * workers] = elements[k];
    }
    for (; place < here; place += workers) to.part()[place] = from[to.index_of(place)];
}

#if defined(__CUDACC__)

template <class T, class F> __global__ void forall_kernel(GlobalArray<T> array, F f) {
    const uint64_t workers = uint64_t(gridDim.x) * blockDim.x;
    forall_local(array, uint64_t(blockIdx.x) * blockDim.x + threadIdx.x, workers, f);
}

/// Launches f(i, element) for every index that lives on this PE; `stream` is one of its device, which is current.
/// Called for every PE of the team it covers the whole array. Returns 0 or a cudaError_t.
template <class T, class F> int32_t forall(const GlobalArray<T>& array, tandem_stream stream, F f) {
    const uint64_t here = array.local_length();
    if (here == 0) return TANDEM_OK;
    constexpr uint64_t THREADS = 256, MAX_BLOCKS = 1 << 16;
    const uint64_t blocks = (here + THREADS - 1) / THREADS;
    forall_kernel<<<uint32_t(blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS), THREADS, 0, stream>>>(array, f);
    return int32_t(cudaGetLastError());
}

#else

/// Calls f(i, element) for every index that lives on this PE.
template <class T, class F> void forall(const GlobalArray<T>& array, F f) { forall_local(array, 0, 1, f); }

#endif

}  // namespace fabric
}  // namespace tandem
