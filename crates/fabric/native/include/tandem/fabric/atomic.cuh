#pragma once
// Atomic operations on a word of any PE, of 32 or 64 bits. Relaxed unless the template argument says more; at system
// scope, so atomic with those of every PE and of the host path.
//
//     atomic_add(team, &counter, 1u, pe);
//     atomic_add<Order::release>(team, &ready, 1u, pe);      // what came before is seen by who acquires this value
#include "team.cuh"

namespace tandem {
namespace fabric {
namespace detail {

template <class Operation, Order O, class T>
TANDEM_FABRIC_FN void amo_change(const tandem_team& team, T* word, T value, uint32_t pe) {
    static_assert(std::is_integral<T>::value, "arithmetic is on integers");
    T* there = reach(team, word, 1, pe);
    if (there != nullptr) change<Operation, O>(there, value);
}

template <class Operation, Order O, class T>
TANDEM_FABRIC_FN T amo_fetch(const tandem_team& team, T* word, T value, uint32_t pe) {
    T* there = reach(team, word, 1, pe);
    return there == nullptr ? T{} : fetch<Operation, O>(there, value);
}

}  // namespace detail

#define TANDEM_FABRIC_AMO(NAME, OPERATION)                                                           \
    template <Order O = Order::relaxed, class T>                                                     \
    TANDEM_FABRIC_FN void atomic_##NAME(const tandem_team& team, T* word, T value, uint32_t pe) {    \
        detail::amo_change<detail::OPERATION, O>(team, word, value, pe);                             \
    }                                                                                                \
    template <Order O = Order::relaxed, class T>                                                     \
    TANDEM_FABRIC_FN T atomic_fetch_##NAME(const tandem_team& team, T* word, T value, uint32_t pe) { \
        static_assert(std::is_integral<T>::value, "arithmetic is on integers");                      \
        return detail::amo_fetch<detail::OPERATION, O>(team, word, value, pe);                       \
    }
/// atomic_add, atomic_fetch_add
TANDEM_FABRIC_AMO(add, Add)
/// atomic_and, atomic_fetch_and
TANDEM_FABRIC_AMO(and, And)
/// atomic_or, atomic_fetch_or
TANDEM_FABRIC_AMO(or, Or)
/// atomic_xor, atomic_fetch_xor
TANDEM_FABRIC_AMO(xor, Xor)
#undef TANDEM_FABRIC_AMO

template <Order O = Order::relaxed, class T>
TANDEM_FABRIC_FN void atomic_inc(const tandem_team& team, T* word, uint32_t pe) {
    atomic_add<O>(team, word, T(1), pe);
}

template <Order O = Order::relaxed, class T>
TANDEM_FABRIC_FN T atomic_fetch_inc(const tandem_team& team, T* word, uint32_t pe) {
    return atomic_fetch_add<O>(team, word, T(1), pe);
}

/// Writes a word of 32 or 64 bits; floating-point words too.
template <Order O = Order::relaxed, class T>
TANDEM_FABRIC_FN void atomic_set(const tandem_team& team, T* word, T value, uint32_t pe) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomic operations are on 32 and 64 bits");
    T* there = detail::reach(team, word, 1, pe);
    if (there != nullptr) detail::store<O>(there, value);
}

/// Reads a word of 32 or 64 bits; floating-point words too. O is relaxed or acquire.
template <Order O = Order::relaxed, class T>
TANDEM_FABRIC_FN T atomic_fetch(const tandem_team& team, const T* word, uint32_t pe) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomic operations are on 32 and 64 bits");
    const T* there = detail::reach(team, word, 1, pe);
    return there == nullptr ? T{} : detail::load<O>(there);
}

/// Writes a word and returns what was there; floating-point words too.
template <Order O = Order::relaxed, class T>
TANDEM_FABRIC_FN T atomic_swap(const tandem_team& team, T* word, T value, uint32_t pe) {
    return detail::amo_fetch<detail::Exchange, O>(team, word, value, pe);
}

/// Writes `value` if `expected` was there, and returns what was there.
template <Order O = Order::relaxed, class T>
TANDEM_FABRIC_FN T atomic_compare_swap(const tandem_team& team, T* word, T expected, T value, uint32_t pe) {
    static_assert(std::is_integral<T>::value, "words are compared as bits");
    T* there = detail::reach(team, word, 1, pe);
    return there == nullptr ? T{} : detail::swap_if<O>(there, expected, value);
}

}  // namespace fabric
}  // namespace tandem
