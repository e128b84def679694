#pragma once
// Bulk transfers and single elements: put, get, their strided forms, p, g.
//
// A target or source address is the caller's own: the same object of the other PE is meant. Data move by plain reads
// and writes, ordered by what comes after (signals.cuh, wait.cuh, barrier.cuh): a transfer alone orders nothing, and
// nobody may touch the bytes meanwhile. When a call returns, the source may be changed; a get has its data.
#include "team.cuh"

namespace tandem {
namespace fabric {
namespace detail {

#if defined(__CUDA_ARCH__)

/// Units that each thread has in flight. One read from a peer takes about a microsecond, so that bandwidth is what is
/// in flight over that time; a thread on its own has more registers to keep it in.
template <class Group> constexpr uint32_t IN_FLIGHT = Group::LANES == 1 ? 16 : 8;

/// A unit of the source. What lies at a peer is read at system scope: the first-level cache may have an old copy.
template <bool PEER, class Unit> __device__ __forceinline__ Unit read_unit(const Unit* from) {
    if constexpr (!PEER) {
        return *from;
    } else if constexpr (sizeof(Unit) == 16) {
        Unit unit;
        asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(unit.x), "=r"(unit.y), "=r"(unit.z), "=r"(unit.w)
                     : "l"(global(from))
                     : "memory");
        return unit;
    } else {
        return load<Order::relaxed>(from);
    }
}

/// A unit of the target. What lies at a peer is global memory; here the target may be shared memory too.
template <bool PEER, class Unit> __device__ __forceinline__ void write_unit(Unit* to, Unit unit) {
    if constexpr (PEER && sizeof(Unit) == 16) {
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(global(to)), "r"(unit.x), "r"(unit.y),
                     "r"(unit.z), "r"(unit.w)
                     : "memory");
    } else {
        *to = unit;
    }
}

/// Copies `count` units. Each warp takes IN_FLIGHT rows of as many units as it has threads, then the next ones that no
/// other warp has: within them an address is a constant away from the first. What is one row for each warp or less takes
/// the shortest way, one unit a thread.
template <bool PEER, class Unit, class Group>
__device__ __forceinline__ void copy_units(Unit* to, const Unit* from, uint64_t count, Group group) {
    constexpr uint32_t LANES = Group::LANES, DEEP = IN_FLIGHT<Group>;
    const uint32_t warps = group.size() / LANES, rank = group.rank();
    if (LANES > 1 && warps == 0) {
        for (uint64_t i = rank; i < count; i += group.size()) to[i] = read_unit<PEER>(from + i);
        return;
    }
    const uint32_t warp_lane = rank % LANES, warp = rank / LANES;
    // Threads beyond the last full warp have nothing to do.
    if (warp >= warps) return;
    if (LANES > 1 && count <= warps * LANES) {
        if (rank < uint32_t(count)) write_unit<!PEER>(to + rank, read_unit<PEER>(from + rank));
        return;
    }
    for (uint64_t row = uint64_t(warp) * (LANES * DEEP); row < count; row += uint64_t(warps) * (LANES * DEEP)) {
        const uint64_t left = count - row;
        const Unit* source = from + row + warp_lane;
        Unit* target = to + row + warp_lane;
        Unit units[DEEP];
        if (left >= LANES * DEEP) {
#pragma unroll
            for (uint32_t k = 0; k < DEEP; k++) units[k] = read_unit<PEER>(source + k * LANES);
#pragma unroll
            for (uint32_t k = 0; k < DEEP; k++) write_unit<!PEER>(target + k * LANES, units[k]);
        } else {
#pragma unroll
            for (uint32_t k = 0; k < DEEP; k++) {
                if (warp_lane + k * LANES < uint32_t(left)) units[k] = read_unit<PEER>(source + k * LANES);
            }
#pragma unroll
            for (uint32_t k = 0; k < DEEP; k++) {
                if (warp_lane + k * LANES < uint32_t(left)) write_unit<!PEER>(target + k * LANES, units[k]);
            }
        }
    }
}

/// The unsigned integer of 1, 2, 4 or 8 bytes.
template <size_t BYTES> struct Wide {
    using type = uint64_t;
};
template <> struct Wide<1> {
    using type = uint8_t;
};
template <> struct Wide<2> {
    using type = uint16_t;
};
template <> struct Wide<4> {
    using type = uint32_t;
};

/// Copies `bytes` by units of 16 bytes where the addresses allow it, else of ALIGNMENT bytes, of which both addresses
/// and the number of bytes are multiples.
template <bool PEER, size_t ALIGNMENT, class Group>
__device__ __forceinline__ void copy(uint64_t to, uint64_t from, uint64_t bytes, Group group) {
    using Narrow = typename Wide<ALIGNMENT>::type;
    if (ALIGNMENT >= 16 || ((to | from | bytes) & 15) == 0) {
        copy_units<PEER>(reinterpret_cast<uint4*>(to), reinterpret_cast<const uint4*>(from), bytes / 16, group);
        return;
    }
    if (((to ^ from) & 15) != 0 || bytes < 32) {
        copy_units<PEER>(reinterpret_cast<Narrow*>(to), reinterpret_cast<const Narrow*>(from), bytes / sizeof(Narrow),
                         group);
        return;
    }
    // The two ends by narrow units, at most 15 bytes each.
    const uint64_t head = (16 - (to & 15)) & 15, body = (bytes - head) & ~uint64_t(15), tail = bytes - head - body;
    for (uint64_t i = group.rank(); i < (head + tail) / sizeof(Narrow); i += group.size()) {
        const uint64_t at = i * sizeof(Narrow) < head ? i * sizeof(Narrow) : i * sizeof(Narrow) + body;
        *reinterpret_cast<Narrow*>(to + at) = read_unit<PEER>(reinterpret_cast<const Narrow*>(from + at));
    }
    copy_units<PEER>(reinterpret_cast<uint4*>(to + head), reinterpret_cast<const uint4*>(from + head), body / 16,
                     group);
}

template <class T> constexpr size_t COPY_ALIGNMENT = alignof(T) < 16 ? alignof(T) : 16;

#endif

/// PEER says that the source is at a peer.
template <bool PEER, class T, class Group>
TANDEM_FABRIC_FN void copy_elements(T* to, const T* from, size_t count, Group group) {
    static_assert(std::is_trivially_copyable<T>::value, "elements move as bytes");
#if defined(__CUDA_ARCH__)
    copy<PEER, COPY_ALIGNMENT<T>>(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), count * sizeof(T),
                                  group);
#else
    // An even part for each thread of the group.
    const size_t begin = count * group.rank() / group.size(), end = count * (group.rank() + 1) / group.size();
    for (size_t i = begin; i < end; i++) to[i] = from[i];
#endif
}

}  // namespace detail

/// Writes `count` elements of this PE's `from` to the object `to` of `pe`.
template <class T, class Group = Thread>
TANDEM_FABRIC_FN void put(const tandem_team& team, T* to, const T* from, size_t count, uint32_t pe, Group group = {}) {
    if (count == 0) return;
    T* there = detail::reach(team, to, count, pe);
    if (there != nullptr) detail::copy_elements<false>(there, from, count, group);
}

/// Reads `count` elements of the object `from` of `pe` into this PE's `to`.
template <class T, class Group = Thread>
TANDEM_FABRIC_FN void get(const tandem_team& team, T* to, const T* from, size_t count, uint32_t pe, Group group = {}) {
    if (count == 0) return;
    const T* there = detail::reach(team, from, count, pe);
    if (there != nullptr) detail::copy_elements<true>(to, there, count, group);
}

/// Writes one element. Of 1, 2, 4 or 8 bytes it is a single relaxed access: who reads it meanwhile gets the old value
/// or the new one.
template <class T> TANDEM_FABRIC_FN void p(const tandem_team& team, T* to, T value, uint32_t pe) {
    T* there = detail::reach(team, to, 1, pe);
    if (there == nullptr) return;
    if constexpr (detail::IS_WORD<T>) {
        detail::store<Order::relaxed>(there, value);
    } else {
        *there = value;
    }
}

/// Reads one element, of 1, 2, 4 or 8 bytes by a single relaxed access. A value of zeros where there is none.
template <class T> TANDEM_FABRIC_FN T g(const tandem_team& team, const T* from, uint32_t pe) {
    const T* there = detail::reach(team, from, 1, pe);
    if (there == nullptr) return T{};
    if constexpr (detail::IS_WORD<T>) {
        return detail::load<Order::relaxed>(there);
    } else {
        return *there;
    }
}

/// Writes `count` elements, each `from_stride` elements after the one before, to places `to_stride` elements apart.
template <class T, class Group = Thread> TANDEM_FABRIC_FN void iput(const tandem_team& team, T* to, const T* from,
                                                                    size_t to_stride, size_t from_stride, size_t count,
                                                                    uint32_t pe, Group group = {}) {
    if (count == 0) return;
    T* there = detail::reach(team, to, (count - 1) * to_stride + 1, pe);
    if (there == nullptr) return;
    for (size_t i = group.rank(); i < count; i += group.size()) there[i * to_stride] = from[i * from_stride];
}

/// Reads `count` elements, each `from_stride` elements after the one before, into places `to_stride` elements apart.
template <class T, class Group = Thread> TANDEM_FABRIC_FN void iget(const tandem_team& team, T* to, const T* from,
                                                                    size_t to_stride, size_t from_stride, size_t count,
                                                                    uint32_t pe, Group group = {}) {
    if (count == 0) return;
    const T* there = detail::reach(team, from, (count - 1) * from_stride + 1, pe);
    if (there == nullptr) return;
    for (size_t i = group.rank(); i < count; i += group.size()) to[i * to_stride] = there[i * from_stride];
}

}  // namespace fabric
}  // namespace tandem
