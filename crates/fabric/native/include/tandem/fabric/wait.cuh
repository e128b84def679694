#pragma once
// Waiting for words of this PE that others change. A wait that succeeds is an acquire: what the changer did before its
// release is seen after the wait. Every wait ends: after the team's timeout, or when the peer's process has left, with a fault that names
// the waiter, the peer if it is given, and the place; after a fault of any PE of the team at once.
#include "team.cuh"

namespace tandem {
namespace fabric {

/// How a word is compared with the wanted value: the word on the left.
enum class Compare : int32_t {
    eq = TANDEM_CMP_EQ,
    ne = TANDEM_CMP_NE,
    gt = TANDEM_CMP_GT,
    ge = TANDEM_CMP_GE,
    lt = TANDEM_CMP_LT,
    le = TANDEM_CMP_LE
};

/// Stands for the index of no word.
constexpr size_t NONE = ~size_t(0);

namespace detail {

template <class T> TANDEM_FABRIC_FN bool compares(T word, Compare compare, T wanted) {
    switch (compare) {
        case Compare::eq: return word == wanted;
        case Compare::ne: return word != wanted;
        case Compare::gt: return word > wanted;
        case Compare::ge: return word >= wanted;
        case Compare::lt: return word < wanted;
        case Compare::le: return word <= wanted;
    }
    return false;
}

/// Looks that a wait takes before it asks the time, and whether all is well.
constexpr uint32_t LOOKS = 64;

/// Calls `look` until it returns true. After a fault it returns false; when so many times the timeout have passed, or `peer` has left, it
/// calls `late` before.
template <class Look, class Late>
TANDEM_FABRIC_FN bool poll(const tandem_team& team, uint32_t peer, Look look, Late late, uint64_t timeouts = 1) {
    uint64_t start = 0;
    for (;;) {
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
        for (uint32_t i = 0; i < LOOKS; i++) {
            if (look()) return true;
#if !defined(__CUDA_ARCH__) && (defined(__x86_64__) || defined(__i386__))
            __builtin_ia32_pause();
#endif
        }
        if (is_poisoned(team)) return false;
        const uint64_t now = now_ns();
        if (start == 0) {
            start = now;
        } else if (now - start > timeouts * team.timeout_ns || has_left(team, peer)) {
            // What one that has left did is there by now.
            if (look()) return true;
            late();
            return false;
        }
#if !defined(__CUDACC__)
        // More PEs than cores: the one that is waited for has to run.
        std::this_thread::yield();
#endif
    }
}

template <class T> TANDEM_FABRIC_FN uint64_t widened(T value) {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

/// Whether there is a word to wait for.
TANDEM_FABRIC_FN bool is_any_left(const int32_t* skip, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (skip == nullptr || skip[i] == 0) return true;
    }
    return false;
}

template <class T> TANDEM_FABRIC_FN bool test_acquire(const T* word, Compare compare, T wanted) {
    static_assert(std::is_integral<T>::value && (sizeof(T) == 4 || sizeof(T) == 8), "waits are for 32 and 64 bits");
    return compares(load<Order::acquire>(word), compare, wanted);
}

}  // namespace detail

/// Whether the word compares as wanted now; acquire if it does.
template <class T> TANDEM_FABRIC_FN bool test(const tandem_team&, const T* word, Compare compare, T wanted) {
    return detail::test_acquire(word, compare, wanted);
}

/// Waits until the word compares as wanted. `from` is the PE that is to change it, for the fault.
template <class T, class Group = Thread> TANDEM_FABRIC_FN bool wait_until(const tandem_team& team, const T* word,
                                                                          Compare compare, T wanted,
                                                                          uint32_t from = ANY_PE, Group group = {}) {
    bool done = true;
    if (group.rank() == 0) {
        done = detail::poll(
            team, from, [&] { return detail::test_acquire(word, compare, wanted); },
            [&] {
                detail::report(team, TANDEM_FAULT_WAIT, from, reinterpret_cast<uint64_t>(word),
                               detail::widened(detail::load<Order::relaxed>(word)), detail::widened(wanted));
            });
    }
    // Where the first thread has acquired, the others do by meeting it.
    return group.all(done);
}

/// Waits until every word compares as wanted, except those whose `skip` is not 0 (null: none).
template <class T, class Group = Thread>
TANDEM_FABRIC_FN bool wait_until_all(const tandem_team& team, const T* words, size_t count, const int32_t* skip,
                                     Compare compare, T wanted, uint32_t from = ANY_PE, Group group = {}) {
    bool done = true;
    for (size_t i = group.rank(); i < count && done; i += group.size()) {
        if (skip == nullptr || skip[i] == 0) done = wait_until(team, words + i, compare, wanted, from);
    }
    return group.all(done);
}

/// Waits until at least one word compares as wanted, of those whose `skip` is 0 (null: all), and writes the indices of
/// all that do into `indices`, which every thread of the group can read. Returns how many; 0 after a fault, or where
/// there is no word to wait for.
template <class T, class Group = Thread>
TANDEM_FABRIC_FN size_t wait_until_some(const tandem_team& team, const T* words, size_t count, size_t* indices,
                                        const int32_t* skip, Compare compare, T wanted, uint32_t from = ANY_PE,
                                        Group group = {}) {
    size_t found = 0;
    // Nobody reads what a call before this one wrote into `indices`.
    group.sync();
    if (group.rank() == 0 && detail::is_any_left(skip, count)) {
        detail::poll(
            team, from,
            [&] {
                for (size_t i = 0; i < count; i++) {
                    if (skip != nullptr && skip[i] != 0) continue;
                    if (detail::test_acquire(words + i, compare, wanted)) indices[found++] = i;
                }
                return found != 0;
            },
            [&] {
                detail::report(team, TANDEM_FAULT_WAIT, from, reinterpret_cast<uint64_t>(words),
                               detail::widened(detail::load<Order::relaxed>(words)), detail::widened(wanted));
            });
    }
    return size_t(group.broadcast(found));
}

/// Waits until at least one word compares as wanted, of those whose `skip` is 0 (null: all), and returns its index;
/// NONE after a fault, or where there is no word to wait for. Looks from `first` on, so that who waits again and again
/// can be fair.
template <class T, class Group = Thread>
TANDEM_FABRIC_FN size_t wait_until_any(const tandem_team& team, const T* words, size_t count, const int32_t* skip,
                                       Compare compare, T wanted, uint32_t from = ANY_PE, size_t first = 0,
                                       Group group = {}) {
    size_t found = NONE;
    // What the others have set to be skipped is.
    group.sync();
    if (group.rank() == 0 && detail::is_any_left(skip, count)) {
        detail::poll(
            team, from,
            [&] {
                for (size_t k = 0; k < count; k++) {
                    const size_t i = (first + k) % count;
                    if (skip != nullptr && skip[i] != 0) continue;
                    if (!detail::test_acquire(words + i, compare, wanted)) continue;
                    found = i;
                    return true;
                }
                return false;
            },
            [&] {
                detail::report(team, TANDEM_FAULT_WAIT, from, reinterpret_cast<uint64_t>(words),
                               detail::widened(detail::load<Order::relaxed>(words)), detail::widened(wanted));
            });
    }
    return size_t(group.broadcast(found));
}

}  // namespace fabric
}  // namespace tandem
