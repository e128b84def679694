#pragma once
// Collectives inside kernels: broadcast, all_reduce, all_gather and all_to_all of a team; barrier.cuh has the barrier.
//
// One group of each PE calls (a thread, a warp or a block), with the same arguments on all PEs but for the addresses'
// PE. The PEs of a team call the same collectives in the same order, and one at a time in a team: a second one on a PE
// while one is under way is a fault. For several at a time, split teams off. Addresses are the caller's own, of memory
// that the team has, as for put and get; up to SMALL bytes may lie in any memory that all threads of the group share.
//
// What a PE sends may be changed when its call returns, and nobody writes to a PE's `to` before that PE has called. All
// threads of the group see the result. Other data are not ordered: that is what barriers are for. False after a fault.
//
// Up to SMALL bytes of each pair of PEs travel in messages: each PE sends its part to every other one, with the number of the
// round in the same 16 bytes, into one of two boxes in turns. As all hear from all in every round, nobody is two rounds
// ahead, and one trip over a link is all that it takes. More bytes are put or read between two barriers.
#include "barrier.cuh"
#include "number.cuh"
#include "signal.cuh"

namespace tandem {
namespace fabric {

/// The most bytes for one PE that travel in messages.
constexpr size_t SMALL = 8 * TANDEM_FABRIC_BOX;

namespace detail {

/// Where a PE keeps what PE `from` sends to it in this round.
TANDEM_FABRIC_FN Message* box(const tandem_team& team, tandem_team_state* state, uint64_t round, uint32_t from) {
    Message* boxes = reinterpret_cast<Message*>(reinterpret_cast<uint64_t>(state) + TANDEM_FABRIC_BOXES);
    return boxes + (round % 2 * team.size + from) * TANDEM_FABRIC_BOX;
}

/// The unsigned integer that elements of T consist of.
template <size_t ALIGNMENT> struct Piece {
    using type = uint64_t;
};
template <> struct Piece<1> {
    using type = uint8_t;
};
template <> struct Piece<2> {
    using type = uint16_t;
};
template <> struct Piece<4> {
    using type = uint32_t;
};
template <class T> using piece_of = typename Piece<(alignof(T) < 8 ? alignof(T) : 8)>::type;

/// The `k`-th 8 bytes of so many elements; zeros past their end.
template <class T> TANDEM_FABRIC_FN uint64_t word_at(const T* from, size_t count, size_t k) {
    using P = piece_of<T>;
    const P* pieces = reinterpret_cast<const P*>(from) + k * (8 / sizeof(P));
    const size_t left = count * sizeof(T) / sizeof(P) - k * (8 / sizeof(P));
    uint64_t word = 0;
    for (size_t i = 0; i < 8 / sizeof(P) && i < left; i++) {
        P piece;
        memcpy(&piece, pieces + i, sizeof piece);
        word |= uint64_t(piece) << (8 * sizeof(P) * i);
    }
    return word;
}

template <class T> TANDEM_FABRIC_FN void set_word(T* to, size_t count, size_t k, uint64_t word) {
    using P = piece_of<T>;
    P* pieces = reinterpret_cast<P*>(to) + k * (8 / sizeof(P));
    const size_t left = count * sizeof(T) / sizeof(P) - k * (8 / sizeof(P));
    for (size_t i = 0; i < 8 / sizeof(P) && i < left; i++) {
        const P piece = P(word >> (8 * sizeof(P) * i));
        memcpy(pieces + i, &piece, sizeof piece);
    }
}

/// The element `i` of those in a box that has come.
template <class T> TANDEM_FABRIC_FN T element_at(const Message* from, size_t i) {
    T element;
    if constexpr (sizeof(T) <= 8) {
        uint64_t word = load<Order::relaxed>(&from[i * sizeof(T) / 8].value) >> (8 * (i * sizeof(T) % 8));
        memcpy(&element, &word, sizeof(T));
    } else {
        uint64_t words[sizeof(T) / 8];
        for (size_t k = 0; k < sizeof(T) / 8; k++)
            words[k] = load<Order::relaxed>(&from[i * (sizeof(T) / 8) + k].value);
        memcpy(&element, words, sizeof(T));
    }
    return element;
}

/// The number of the collective that the PE begins here, 0 after a fault.
template <class Group> TANDEM_FABRIC_FN uint64_t begin_round(const tandem_team& team, Group group) {
    uint64_t round = 0;
    if (group.rank() == 0) {
        tandem_team_state* mine = own_state(team);
        // Three accesses that do not wait for each other.
        const uint64_t begun = fetch<Add, Order::relaxed>(&mine->collectives, uint64_t(1));
        const uint64_t left = load<Order::relaxed>(&mine->collectives_left);
        if (is_poisoned(team) || !reaches_all(team)) {
            round = 0;
        } else if (begun == left) {
            round = begun + 1;
        } else {
            report(team, TANDEM_FAULT_OVERLAP, team.me, reinterpret_cast<uint64_t>(&mine->collectives), left, begun);
        }
    }
    // All have come: who hears of this round may overwrite the boxes of the last one.
    return group.broadcast(round);
}

/// Ends a collective.
template <class Group> TANDEM_FABRIC_FN bool end_round(const tandem_team& team, uint64_t round, bool is_well,
                                                       Group group) {
    is_well = group.all(is_well);
    if (group.rank() == 0) store<Order::relaxed>(&own_state(team)->collectives_left, round);
    return is_well;
}

/// Sends `words(me)` words to every PE, `word(pe, k)` as the `k`-th to `pe`, and waits for the `words(pe)` words of each.
/// There is at least one of each PE, so that all hear from all.
template <class Words, class Word, class Group> TANDEM_FABRIC_FN bool exchange(const tandem_team& team, uint64_t round,
                                                                               uint32_t most, Words words, Word word,
                                                                               Group group) {
    const uint32_t mine = words(team.me);
    for (uint32_t i = group.rank(); i < team.size * mine; i += group.size()) {
        const uint32_t pe = (team.me + 1 + i / mine) % team.size;
        store_message(box(team, state_of(team, pe), round, team.me) + i % mine, word(pe, i % mine), round);
    }
    bool is_well = true;
    for (uint32_t i = group.rank(); i < team.size * most && is_well; i += group.size()) {
        const uint32_t from = i / most;
        if (i % most >= words(from)) continue;
        const Message* message = box(team, own_state(team), round, from) + i % most;
        uint64_t value = 0, seen = 0;
        is_well = poll(
            team, from,
            [&] {
                load_message(message, value, seen);
                return seen == round;
            },
            [&] {
                report(team, TANDEM_FAULT_COLLECTIVE, from, reinterpret_cast<uint64_t>(&message->signal), seen, round);
            });
    }
    return group.all(is_well);
}

/// Words that so many small elements are sent as.
template <class T> TANDEM_FABRIC_FN uint32_t words_of(size_t count) {
    const uint32_t bytes = uint32_t(count * sizeof(T));
    return bytes <= 8 ? 1 : (bytes + 7) / 8;
}

/// What all PEs have sent as element `i`, combined in the order of the PEs.
template <class T, class Operation>
TANDEM_FABRIC_FN T combined_at(const tandem_team& team, uint64_t round, size_t i, Operation operation) {
    // Reads that are under way at a time.
    constexpr uint32_t DEEP = sizeof(T) <= 8 ? 8 : 2;
    T all = element_at<T>(box(team, own_state(team), round, 0), i);
    for (uint32_t first = 1; first < team.size; first += DEEP) {
        T some[DEEP];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
        for (uint32_t k = 0; k < DEEP; k++) {
            if (first + k < team.size) some[k] = element_at<T>(box(team, own_state(team), round, first + k), i);
        }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
        for (uint32_t k = 0; k < DEEP; k++) {
            if (first + k < team.size) all = operation(all, some[k]);
        }
    }
    return all;
}

/// Whether all PEs have so many elements there; a fault otherwise.
template <class T> TANDEM_FABRIC_FN bool is_everywhere(const tandem_team& team, const T* at, size_t count) {
    for (uint32_t pe = 0; pe < team.size; pe++) {
        if (reach(team, at, count, pe) == nullptr) return false;
    }
    return true;
}

/// An element or a vector of elements of a PE.
template <class Unit> TANDEM_FABRIC_FN Unit unit_at(const Unit* from) {
#if defined(__CUDA_ARCH__)
    // Where a unit is no vector and no word, its bytes are words.
    if constexpr (sizeof(Unit) == 16 && alignof(Unit) == 16) {
        return bit_cast<Unit>(read_unit<true>(reinterpret_cast<const uint4*>(from)));
    } else if constexpr (IS_WORD<Unit>) {
        return load<Order::relaxed>(from);
    } else {
        using P = piece_of<Unit>;
        P pieces[sizeof(Unit) / sizeof(P)];
#pragma unroll
        for (size_t i = 0; i < sizeof(Unit) / sizeof(P); i++) {
            pieces[i] = load<Order::relaxed>(reinterpret_cast<const P*>(from) + i);
        }
        Unit unit;
        memcpy(&unit, pieces, sizeof unit);
        return unit;
    }
#else
    return *from;
#endif
}

/// 16 bytes of elements, or one element.
template <class T, size_t COUNT> struct alignas(COUNT == 1 ? alignof(T) : 16) Elements {
    T element[COUNT];
};

/// Combines units [begin, end) of all PEs' `from`, in the order of the PEs, and writes them to every PE's `to`.
template <size_t COUNT, class T, class Operation, class Group>
TANDEM_FABRIC_FN void reduce_units(const tandem_team& team, T* to, const T* from, size_t begin, size_t end,
                                   Operation operation, Group group) {
    using Unit = Elements<T, COUNT>;
    // Reads of a peer that are under way at a time.
    constexpr uint32_t DEEP = 4;
    for (size_t i = begin + group.rank(); i < end; i += size_t(DEEP) * group.size()) {
        Unit all[DEEP];
        for (uint32_t pe = 0; pe < team.size; pe++) {
            const Unit* source = reinterpret_cast<const Unit*>(reach(team, from, 1, pe)) + i;
            Unit one[DEEP];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
            for (uint32_t k = 0; k < DEEP; k++) {
                if (i + k * size_t(group.size()) < end) one[k] = unit_at(source + k * size_t(group.size()));
            }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
            for (uint32_t k = 0; k < DEEP; k++) {
                if (i + k * size_t(group.size()) >= end) continue;
                for (size_t e = 0; e < COUNT; e++) {
                    all[k].element[e] = pe == 0 ? one[k].element[e] : operation(all[k].element[e], one[k].element[e]);
                }
            }
        }
        for (uint32_t n = 0; n < team.size; n++) {
            Unit* target = reinterpret_cast<Unit*>(reach(team, to, 1, (team.me + 1 + n) % team.size)) + i;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
            for (uint32_t k = 0; k < DEEP; k++) {
                if (i + k * size_t(group.size()) < end) target[k * size_t(group.size())] = all[k];
            }
        }
    }
}

/// The part [begin, end) of `count` units that is this PE's.
struct Part {
    size_t begin;
    size_t end;
};
TANDEM_FABRIC_FN Part part_of(const tandem_team& team, size_t count) {
    const size_t each = count / team.size, more = count % team.size, me = team.me;
    const size_t begin = each * me + (me < more ? me : more);
    return Part{begin, begin + each + (me < more ? 1 : 0)};
}

/// Reduces what the PE has to: a part of the elements, from all PEs to all.
template <class T, class Operation, class Group>
TANDEM_FABRIC_FN void reduce_part(const tandem_team& team, T* to, const T* from, size_t count, Operation operation,
                                  Group group) {
    size_t done = 0;
    if constexpr (sizeof(T) < 16 && 16 % sizeof(T) == 0) {
        uint64_t mixed = 0;
        for (uint32_t pe = 0; pe < team.size; pe++) {
            mixed |= reinterpret_cast<uint64_t>(reach(team, from, 1, pe)) |
                     reinterpret_cast<uint64_t>(reach(team, to, 1, pe));
        }
        constexpr size_t COUNT = 16 / sizeof(T);
        if (mixed % 16 == 0) {
            const Part units = part_of(team, count / COUNT);
            reduce_units<COUNT>(team, to, from, units.begin, units.end, operation, group);
            done = count / COUNT * COUNT;
        }
    }
    const Part rest = part_of(team, count - done);
    reduce_units<1>(team, to, from, done + rest.begin, done + rest.end, operation, group);
}

/// What is not small: `move` between two barriers, behind which nobody still reads, and all is there.
template <class Move, class Group>
TANDEM_FABRIC_FN bool between_barriers(const tandem_team& team, bool is_well, Move move, Group group) {
    // A PE that lacks the memory does not come, and its fault ends the others' waits.
    if (!group.all(is_well) || !barrier(team, group)) return false;
    move();
    return barrier(team, group);
}

}  // namespace detail

/// `root`'s `from` to every PE's `to`; they may be the same.
template <class T, class Group = Thread> TANDEM_FABRIC_FN bool broadcast(const tandem_team& team, T* to, const T* from,
                                                                         size_t count, uint32_t root,
                                                                         Group group = {}) {
    using namespace detail;
    static_assert(std::is_trivially_copyable<T>::value, "elements move as bytes");
    if (root >= team.size) {
        if (group.rank() == 0) {
            report(team, TANDEM_FAULT_BOUNDS, root, reinterpret_cast<uint64_t>(from), 0, count * sizeof(T));
        }
        return group.all(false);
    }
    const uint64_t round = begin_round(team, group);
    if (round == 0) return false;
    bool is_well;
    if (count <= SMALL / sizeof(T)) {
        const uint32_t most = words_of<T>(count);
        is_well = exchange(
            team, round, most, [&](uint32_t pe) { return pe == root ? most : 1u; },
            [&](uint32_t, size_t k) { return team.me == root ? word_at(from, count, k) : 0; }, group);
        if (is_well) {
            const Message* here = box(team, own_state(team), round, root);
            for (uint32_t k = group.rank(); k < most && count > 0; k += group.size()) {
                set_word(to, count, k, load<Order::relaxed>(&here[k].value));
            }
        }
    } else {
        const bool is_there = reach(team, from, count, root) != nullptr && reach(team, to, count, team.me) != nullptr;
        is_well = between_barriers(
            team, is_there,
            [&] {
                if (team.me != root || to != from) get(team, to, from, count, root, group);
            },
            group);
    }
    return end_round(team, round, is_well, group);
}

/// Every PE's `to` becomes the combination of the `from` of all, in the order of the PEs: the same bits everywhere. They may
/// be the same. An element is of 1, 2, 4 or a multiple of 8 bytes.
template <class T, class Operation, class Group = Thread>
TANDEM_FABRIC_FN bool all_reduce(const tandem_team& team, T* to, const T* from, size_t count, Operation operation,
                                 Group group = {}) {
    using namespace detail;
    static_assert(std::is_trivially_copyable<T>::value && (IS_WORD<T> || sizeof(T) % 8 == 0), "1, 2, 4 or 8 n bytes");
    const uint64_t round = begin_round(team, group);
    if (round == 0) return false;
    bool is_well;
    if (count <= SMALL / sizeof(T)) {
        const uint32_t words = words_of<T>(count);
        is_well = exchange(
            team, round, words, [&](uint32_t) { return words; },
            [&](uint32_t, size_t k) { return word_at(from, count, k); }, group);
        for (size_t i = group.rank(); i < count && is_well; i += group.size()) {
            to[i] = combined_at<T>(team, round, i, operation);
        }
    } else {
        is_well = between_barriers(
            team, is_everywhere(team, from, count) && is_everywhere(team, to, count),
            [&] { reduce_part(team, to, from, count, operation, group); }, group);
    }
    return end_round(team, round, is_well, group);
}

/// Every PE's `to` gets the `count` elements of each PE's `from`, in the order of the PEs. A PE's `from` may be its own part
/// of `to`.
template <class T, class Group = Thread> TANDEM_FABRIC_FN bool all_gather(const tandem_team& team, T* to, const T* from,
                                                                          size_t count, Group group = {}) {
    using namespace detail;
    static_assert(std::is_trivially_copyable<T>::value, "elements move as bytes");
    const uint64_t round = begin_round(team, group);
    if (round == 0) return false;
    bool is_well;
    if (count <= SMALL / sizeof(T)) {
        const uint32_t words = words_of<T>(count);
        is_well = exchange(
            team, round, words, [&](uint32_t) { return words; },
            [&](uint32_t, size_t k) { return word_at(from, count, k); }, group);
        for (uint32_t i = group.rank(); i < team.size * words && is_well && count > 0; i += group.size()) {
            const uint32_t pe = i / words, k = i % words;
            const Message* here = box(team, own_state(team), round, pe);
            set_word(to + pe * count, count, k, load<Order::relaxed>(&here[k].value));
        }
    } else {
        is_well = between_barriers(
            team, is_everywhere(team, to, count * team.size),
            [&] {
                T* own = to + team.me * count;
                for (uint32_t n = 1; n <= team.size; n++) {
                    const uint32_t pe = (team.me + n) % team.size;
                    if (pe != team.me || own != from) put(team, own, from, count, pe, group);
                }
            },
            group);
    }
    return end_round(team, round, is_well, group);
}

/// The OpenSHMEM name of all_gather.
template <class T, class Group = Thread> TANDEM_FABRIC_FN bool fcollect(const tandem_team& team, T* to, const T* from,
                                                                        size_t count, Group group = {}) {
    return all_gather(team, to, from, count, group);
}

/// The `j`-th `count` elements of PE i's `to` become the `i`-th `count` elements of PE j's `from`. They must not overlap.
template <class T, class Group = Thread> TANDEM_FABRIC_FN bool all_to_all(const tandem_team& team, T* to, const T* from,
                                                                          size_t count, Group group = {}) {
    using namespace detail;
    static_assert(std::is_trivially_copyable<T>::value, "elements move as bytes");
    const uint64_t round = begin_round(team, group);
    if (round == 0) return false;
    bool is_well;
    if (count <= SMALL / sizeof(T)) {
        const uint32_t words = words_of<T>(count);
        is_well = exchange(
            team, round, words, [&](uint32_t) { return words; },
            [&](uint32_t pe, size_t k) { return word_at(from + pe * count, count, k); }, group);
        for (uint32_t i = group.rank(); i < team.size * words && is_well && count > 0; i += group.size()) {
            const uint32_t pe = i / words, k = i % words;
            const Message* here = box(team, own_state(team), round, pe);
            set_word(to + pe * count, count, k, load<Order::relaxed>(&here[k].value));
        }
    } else {
        is_well = between_barriers(
            team, is_everywhere(team, to, count * team.size),
            [&] {
                for (uint32_t n = 1; n <= team.size; n++) {
                    const uint32_t pe = (team.me + n) % team.size;
                    put(team, to + team.me * count, from + pe * count, count, pe, group);
                }
            },
            group);
    }
    return end_round(team, round, is_well, group);
}

}  // namespace fabric
}  // namespace tandem
