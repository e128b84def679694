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

/// Vectors that each thread has in flight. One read from a peer takes about a microsecond, so that bandwidth is
/// what is in flight over that time.
constexpr uint32_t IN_FLIGHT = 8;

/// Copies `count` units, the threads of the group side by side.
template <class Unit, class Group>
__device__ __forceinline__ void copy_units(Unit* to, const Unit* from, uint64_t count, Group group) {
    const uint64_t step = group.size();
    uint64_t i = group.rank();
    for (; i + (IN_FLIGHT - 1) * step < count; i += IN_FLIGHT * step) {
        Unit units[IN_FLIGHT];
#pragma unroll
        for (uint32_t k = 0; k < IN_FLIGHT; k++) units[k] = from[i + k * step];
#pragma unroll
        for (uint32_t k = 0; k < IN_FLIGHT; k++) to[i + k * step] = units[k];
    }
    // What is left: all reads before the first write again.
    Unit units[IN_FLIGHT];
#pragma unroll
    for (uint32_t k = 0; k < IN_FLIGHT; k++) {
        if (i + k * step < count) units[k] = from[i + k * step];
    }
#pragma unroll
    for (uint32_t k = 0; k < IN_FLIGHT; k++) {
        if (i + k * step < count) to[i + k * step] = units[k];
    }
}

/// The same by units as wide as both addresses allow; bytes is a multiple of ALIGNMENT, as are both addresses.
template <size_t ALIGNMENT, class Group>
__device__ __forceinline__ void copy(uint64_t to, uint64_t from, uint64_t bytes, Group group) {
    using Narrow = typename std::conditional<
        ALIGNMENT == 1, uint8_t,
        typename std::conditional<ALIGNMENT == 2, uint16_t,
                                  typename std::conditional<ALIGNMENT == 4, uint32_t, uint64_t>::type>::type>::type;
    if (((to ^ from) & 15) != 0) {
        copy_units(reinterpret_cast<Narrow*>(to), reinterpret_cast<const Narrow*>(from), bytes / sizeof(Narrow), group);
        return;
    }
    uint64_t head = 0;
    if (ALIGNMENT < 16) {
        head = (16 - (to & 15)) & 15;
        head = head < bytes ? head : bytes;
        for (uint64_t i = group.rank(); i < head / sizeof(Narrow); i += group.size()) {
            reinterpret_cast<Narrow*>(to)[i] = reinterpret_cast<const Narrow*>(from)[i];
        }
    }
    const uint64_t body = (bytes - head) & ~uint64_t(15);
    copy_units(reinterpret_cast<uint4*>(to + head), reinterpret_cast<const uint4*>(from + head), body / 16, group);
    if (ALIGNMENT < 16) {
        const uint64_t done = head + body;
        for (uint64_t i = group.rank(); i < (bytes - done) / sizeof(Narrow); i += group.size()) {
            reinterpret_cast<Narrow*>(to + done)[i] = reinterpret_cast<const Narrow*>(from + done)[i];
        }
    }
}

template <class T> constexpr size_t COPY_ALIGNMENT = alignof(T) < 16 ? alignof(T) : 16;

#endif

template <class T, class Group> TANDEM_FABRIC_FN void copy_elements(T* to, const T* from, size_t count, Group group) {
    static_assert(std::is_trivially_copyable<T>::value, "elements move as bytes");
#if defined(__CUDA_ARCH__)
    copy<COPY_ALIGNMENT<T>>(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), count * sizeof(T), group);
#else
    // An even part for each thread of the group.
    const size_t begin = count * group.rank() / group.size(), end = count * (group.rank() + 1) / group.size();
    if (begin < end) std::memcpy(static_cast<void*>(to + begin), from + begin, (end - begin) * sizeof(T));
#endif
}

}  // namespace detail

/// Writes `count` elements of this PE's `from` to the object `to` of `pe`.
template <class T, class Group = Thread>
TANDEM_FABRIC_FN void put(const tandem_team& team, T* to, const T* from, size_t count, uint32_t pe, Group group = {}) {
    if (count == 0) return;
    T* there = detail::reach(team, to, count, pe);
    if (there != nullptr) detail::copy_elements(there, from, count, group);
}

/// Reads `count` elements of the object `from` of `pe` into this PE's `to`.
template <class T, class Group = Thread>
TANDEM_FABRIC_FN void get(const tandem_team& team, T* to, const T* from, size_t count, uint32_t pe, Group group = {}) {
    if (count == 0) return;
    const T* there = detail::reach(team, from, count, pe);
    if (there != nullptr) detail::copy_elements(to, there, count, group);
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
template <class T, class Group = Thread>
TANDEM_FABRIC_FN void iput(const tandem_team& team, T* to, const T* from, size_t to_stride, size_t from_stride,
                           size_t count, uint32_t pe, Group group = {}) {
    if (count == 0) return;
    T* there = detail::reach(team, to, (count - 1) * to_stride + 1, pe);
    if (there == nullptr) return;
    for (size_t i = group.rank(); i < count; i += group.size()) there[i * to_stride] = from[i * from_stride];
}

/// Reads `count` elements, each `from_stride` elements after the one before, into places `to_stride` elements apart.
template <class T, class Group = Thread>
TANDEM_FABRIC_FN void iget(const tandem_team& team, T* to, const T* from, size_t to_stride, size_t from_stride,
                           size_t count, uint32_t pe, Group group = {}) {
    if (count == 0) return;
    const T* there = detail::reach(team, from, (count - 1) * from_stride + 1, pe);
    if (there == nullptr) return;
    for (size_t i = group.rank(); i < count; i += group.size()) to[i * to_stride] = there[i * from_stride];
}

}  // namespace fabric
}  // namespace tandem
