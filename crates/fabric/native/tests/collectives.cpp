// Collectives inside kernels, with threads for PEs and crews of threads for blocks, against sums over all inputs.
//
// With FEW_KINDS, which compiles in less time, of five kinds of elements; else of fourteen.
//
//     collectives <seed> <PEs> <rounds> [corrupt]     corrupt: a wrong bit in what is expected, which must be found
#include <algorithm>
#include <cmath>

#include "harness.hpp"

namespace {

uint64_t rounds = 10;
bool corrupt = false;

/// A number of a field of 2^255 - 19 elements, as 32 bytes.
struct Field {
    uint64_t limb[4];
};

__extension__ typedef unsigned __int128 Wide;

Field operator+(Field a, Field b) {
    constexpr uint64_t P[4] = {~uint64_t(18), ~uint64_t(0), ~uint64_t(0), ~uint64_t(0) >> 1};
    Field sum;
    Wide carry = 0;
    for (int i = 0; i < 4; i++) {
        carry += Wide(a.limb[i]) + b.limb[i];
        sum.limb[i] = uint64_t(carry);
        carry >>= 64;
    }
    Field less;
    Wide borrow = 0;
    for (int i = 0; i < 4; i++) {
        const Wide difference = Wide(sum.limb[i]) - P[i] - borrow;
        less.limb[i] = uint64_t(difference);
        borrow = difference >> 64 != 0 ? 1 : 0;
    }
    return borrow == 0 ? less : sum;
}

template <class T> T random_of(Random& random) {
    const uint64_t bits = random();
    if constexpr (std::is_floating_point<T>::value) {
        return T(int64_t(bits % 2001) - 1000) / 16;
    } else if constexpr (std::is_same<T, f16>::value || std::is_same<T, bf16>::value) {
        return T(float(int64_t(bits % 2001) - 1000) / 16);
    } else if constexpr (std::is_same<T, Field>::value) {
        return Field{{bits, random(), random(), random() >> 2}};
    } else if constexpr (std::is_integral<T>::value) {
        return T(bits);
    } else {
        T value;
        uint8_t bytes[sizeof(T)];
        for (uint8_t& byte : bytes) byte = uint8_t(random());
        std::memcpy(&value, bytes, sizeof value);
        return value;
    }
}

/// An element that is no word and no multiple of one.
struct Odd {
    uint32_t part[3];
};

/// What an operation is, said another way than in the header: on 64 bits, or on doubles with one rounding.
enum class How { sum, product, least, greatest, all, any, either };

template <class T> T expected_of(How how, T a, T b) {
    if constexpr (std::is_same<T, Field>::value) {
        return a + b;
    } else if constexpr (std::is_integral<T>::value) {
        using U = std::make_unsigned_t<T>;
        const uint64_t x = U(a), y = U(b);
        switch (how) {
            case How::sum: return T(U(x + y));
            case How::product: return T(U(x * y));
            case How::least: return std::min(a, b);
            case How::greatest: return std::max(a, b);
            case How::all: return T(U(x & y));
            case How::any: return T(U(x | y));
            default: return T(U((x | y) & ~(x & y)));
        }
    } else if constexpr (std::is_floating_point<T>::value) {
        return how == How::sum       ? a + b
               : how == How::product ? a * b
               : how == How::least   ? std::fmin(a, b)
                                     : std::fmax(a, b);
    } else {
        const double x = double(float(a)), y = double(float(b));
        // Sums and products of such numbers are exact in a double, or fit a float's precision twice over.
        return T(float(how == How::sum       ? x + y
                       : how == How::product ? x * y
                       : how == How::least   ? std::fmin(x, y)
                                             : std::fmax(x, y)));
    }
}

constexpr size_t MOST = 1100;

size_t length(Random& random, size_t size) {
    const size_t edge = SMALL / size;
    const size_t lengths[] = {0,  1,  2,  3,  7,   8,   9,   15,   16,   17,       31,      32,
                              33, 63, 64, 65, 127, 128, 129, 1023, 1024, MOST - 1, edge + 1};
    const size_t chosen = below(random, 25);
    return chosen < 23 ? lengths[chosen] : chosen == 23 ? edge : (edge > 0 ? edge - 1 : 0);
}

/// Runs f(team, group) on each thread of a crew of each member.
template <class F> void crews(World& world, const std::vector<uint32_t>& members, uint32_t crew, uint32_t slot, F f) {
    world.run(
        members,
        [&](tandem_team team) {
            Crew::Shared shared(crew);
            std::vector<std::thread> threads;
            for (uint32_t rank = 0; rank < crew; rank++) {
                threads.emplace_back([&, rank] { f(team, Crew(&shared, rank)); });
            }
            for (std::thread& thread : threads) thread.join();
        },
        slot);
}

/// Of each PE's part.
constexpr uint64_t BYTES = 8 * MOST, FROM = 4096, TO = FROM + 8 * BYTES + 64;

/// One kind of element through all collectives of a team, round after round without a barrier in between: nobody writes to
/// the `to` of a PE that still compares the last round.
template <class T, class F> void kind(World& world, const char* section, const std::vector<uint32_t>& members,
                                      uint64_t seed, uint32_t crew, uint32_t slot, uint64_t base, F reduce) {
    const uint32_t n = uint32_t(members.size());
    crews(world, members, crew, slot, [&](const tandem_team& team, const Crew& group) {
        T* from = at<T>(team, base + FROM);
        T* to = at<T>(team, base + TO);
        for (uint64_t round = 0; round < rounds; round++) {
            Random random(seed * 1000 + round);
            const uint32_t what = uint32_t(below(random, 4)), root = uint32_t(below(random, n));
            const size_t count = std::min<size_t>(length(random, sizeof(T)), BYTES / sizeof(T));
            const How how = How(below(random, 7));
            const bool is_same = below(random, 3) == 0;
            // What all PEs send, one after the other.
            std::vector<std::vector<T>> all(n);
            for (std::vector<T>& one : all) {
                one.resize(count * n);
                for (T& x : one) x = random_of<T>(random);
            }
            const size_t sent = what == 3 ? count * n : count;
            T* source = what == 3 || !is_same ? from : what == 2 ? to + team.me * count : to;
            // Whoever has left the last round may write.
            group.sync();
            if (group.rank() == 0) std::copy_n(all[team.me].begin(), sent, source);
            group.sync();
            std::vector<T> wanted;
            bool is_well = false;
            if (what == 0) {
                is_well = broadcast(team, to, source, count, root, group);
                wanted.assign(all[root].begin(), all[root].begin() + count);
            } else if (what == 1) {
                is_well = reduce(team, to, source, count, how, group);
                for (size_t i = 0; i < count; i++) {
                    T value = all[0][i];
                    for (uint32_t pe = 1; pe < n; pe++) value = expected_of(how, value, all[pe][i]);
                    wanted.push_back(value);
                }
            } else {
                for (uint32_t pe = 0; pe < n; pe++) {
                    const auto begin = all[pe].begin() + (what == 3 ? team.me * count : 0);
                    wanted.insert(wanted.end(), begin, begin + count);
                }
                is_well =
                    what == 2 ? fcollect(team, to, source, count, group) : all_to_all(team, to, source, count, group);
            }
            CHECK(section, is_well, "collective %u of %zu failed", what, count);
            if (corrupt && round == rounds - 1 && !wanted.empty()) {
                reinterpret_cast<uint8_t*>(wanted.data())[wanted.size() / 2 * sizeof(T)] ^= 1;
            }
            CHECK(section, wanted.empty() || std::memcmp(to, wanted.data(), wanted.size() * sizeof(T)) == 0,
                  "collective %u of %zu elements of %zu bytes, operation %d, round %llu, PE %u of %u", what, count,
                  sizeof(T), int(how), (unsigned long long)round, team.me, n);
        }
    });
}

struct Numbers {
    template <class T, class Group>
    bool operator()(const tandem_team& team, T* to, const T* from, size_t count, How how, const Group& group) const {
        if constexpr (std::is_integral<T>::value) {
            if (how == How::all) return all_reduce(team, to, from, count, And(), group);
            if (how == How::any) return all_reduce(team, to, from, count, Or(), group);
            if (how == How::either) return all_reduce(team, to, from, count, Xor(), group);
        }
        if (how == How::sum) return all_reduce(team, to, from, count, Sum(), group);
        if (how == How::product) return all_reduce(team, to, from, count, Product(), group);
        if (how == How::least) return all_reduce(team, to, from, count, Min(), group);
        return all_reduce(team, to, from, count, Max(), group);
    }
};

struct Fields {
    template <class Group> bool operator()(const tandem_team& team, Field* to, const Field* from, size_t count, How,
                                           const Group& group) const {
        return all_reduce(team, to, from, count, Sum(), group);
    }
};

/// Elements that are only moved; in place of a sum they are gathered from PE 0.
struct Bytes {
    template <class Group> bool operator()(const tandem_team& team, Odd* to, const Odd* from, size_t count, How,
                                           const Group& group) const {
        return broadcast(team, to, from, count, 0, group);
    }
};
Odd expected_of(How, Odd a, Odd) { return a; }

void all_kinds(World& world, const char* section, const std::vector<uint32_t>& members, uint64_t seed, uint32_t crew,
               uint32_t slot, uint64_t base) {
    const auto numbers = [&](auto zero) {
        kind<decltype(zero)>(world, section, members, ++seed, crew, slot, base, Numbers());
    };
    numbers(uint8_t());
    numbers(int64_t());
    numbers(f16());
#if !defined(FEW_KINDS)
    numbers(int8_t());
    numbers(uint16_t());
    numbers(int16_t());
    numbers(uint32_t());
    numbers(int32_t());
    numbers(uint64_t());
    numbers(float());
    numbers(double());
    numbers(bf16());
#endif
    kind<Field>(world, section, members, ++seed, crew, slot, base, Fields());
    kind<Odd>(world, section, members, ++seed, crew, slot, base, Bytes());
}

/// Every pattern of 16 bits, and roundings of floats to the nearest of them.
void short_floats(uint64_t seed) {
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        f16 half;
        half.bits = uint16_t(bits);
        const int exponent = int(bits >> 10 & 31), fraction = int(bits & 0x3ff);
        const double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
        const float value = float(half);
        if (exponent == 31) {
            CHECK("numbers", fraction == 0 ? std::isinf(value) : std::isnan(value), "%x", bits);
            CHECK("numbers", fraction == 0 ? f16(value).bits == bits : std::isnan(float(f16(value))), "%x back", bits);
            continue;
        }
        CHECK("numbers", value == (bits >> 15 ? -size : size) && std::signbit(value) == (bits >> 15 != 0), "%x", bits);
        CHECK("numbers", f16(value).bits == bits, "%x back", bits);
        // Between this one and the next: which is nearer, and of two as near the one whose last bit is 0.
        if (exponent == 30 && fraction == 0x3ff) continue;
        f16 next;
        next.bits = uint16_t(bits + 1);
        const double a = double(value), b = double(float(next)), middle = (a + b) / 2;
        CHECK("numbers", f16(float(middle)).bits == bits + (bits & 1), "%x and the next", bits);
        CHECK("numbers", f16(std::nextafterf(float(middle), float(a))).bits == bits, "%x, less", bits);
        CHECK("numbers", f16(std::nextafterf(float(middle), float(b))).bits == bits + 1, "%x, more", bits);
    }
    CHECK("numbers", f16(65519.99f).bits == 0x7bff && f16(65520.0f).bits == 0x7c00 && f16(1e30f).bits == 0x7c00,
          "large");
    Random random(seed);
    for (uint32_t i = 0; i < 100000; i++) {
        const uint32_t bits = uint32_t(random());
        float value;
        std::memcpy(&value, &bits, sizeof value);
        const bf16 low = bf16(value);
        if (std::isnan(value)) {
            CHECK("numbers", std::isnan(float(low)), "%x is no number", bits);
            continue;
        }
        // No neighbour is nearer.
        const double error = std::fabs(double(float(low)) - double(value));
        for (int step : {-1, 1}) {
            bf16 other = low;
            other.bits = uint16_t(other.bits + step);
            const double more = std::fabs(double(float(other)) - double(value));
            if (std::isnan(more) || std::isinf(float(low))) continue;
            CHECK("numbers", error < more || (error == more && low.bits % 2 == 0), "%x", bits);
        }
    }
}

/// A PE that does not come is named, whatever the size; a second collective on a PE while one is under way is a fault.
void faults(uint32_t pes) {
    for (const size_t count : {size_t(1), MOST}) {
        if (pes < 2) break;
        World world(pes);
        world.run(world.everyone(), [&](tandem_team team) {
            if (team.me == pes - 1) return;
            // The others would wait for long if nobody told them.
            team.timeout_ns = team.me == 0 ? 50 * 1000 * 1000 : 100ull * 1000 * 1000 * 1000;
            uint64_t* from = at<uint64_t>(team, FROM);
            uint64_t* to = at<uint64_t>(team, TO);
            if (team.me == 0) {
                // Threads that have not begun are not absent.
                for (uint32_t pe = 1; pe + 1 < pes; pe++) {
                    const uint64_t* come = count == 1 ? &detail::box(team, detail::own_state(team), 1, pe)->signal
                                                      : &detail::own_state(team)->arrived[pe];
                    while (detail::load<Order::relaxed>(come) == 0) std::this_thread::yield();
                }
            }
            CHECK("faults", !all_reduce(team, to, from, count, Sum()), "a sum without a PE");
            CHECK("faults", !all_gather(team, to, from, 1), "a collective after a fault");
        });
        const tandem_fault& fault = world.fault(0);
        CHECK("faults", fault.what == (count == 1 ? TANDEM_FAULT_COLLECTIVE : TANDEM_FAULT_BARRIER), "%u", fault.what);
        CHECK("faults", fault.waiter == 0 && fault.peer == pes - 1, "peer %u", fault.peer);
        CHECK("faults", fault.seen == 0 && fault.wanted == 1, "round %llu", (unsigned long long)fault.wanted);
        for (uint32_t pe = 1; pe < pes; pe++) CHECK("faults", world.fault(pe).what == 0, "a record of PE %u", pe);
    }
    World world(pes);
    tandem_team team = world.team(world.everyone(), 0);
    detail::own_state(team)->collectives = 7;
    detail::own_state(team)->collectives_left = 6;
    uint64_t value = 1;
    CHECK("faults", !all_reduce(team, &value, &value, 1, Sum()), "two at a time");
    CHECK("faults", world.fault(0).what == TANDEM_FAULT_OVERLAP && world.fault(0).peer == 0, "%u", world.fault(0).what);
    world.reset(0);
    world.fault(0) = {};
    CHECK("faults", !broadcast(team, &value, &value, 1, pes), "a root that is not there");
    CHECK("faults", world.fault(0).what == TANDEM_FAULT_BOUNDS && world.fault(0).peer == pes, "%u",
          world.fault(0).what);
    // Memory that is not the team's: small ones take it, others do not.
    for (uint32_t what = 0; what < 4; what++) {
        World other(1);
        team = other.team({0}, 0);
        std::vector<uint64_t> own(2 * MOST, 3);
        uint64_t* to = own.data() + MOST;
        CHECK("faults", all_reduce(team, to, own.data(), 32, Sum()) && to[31] == 3, "a sum of one PE");
        const bool done = what == 0   ? broadcast(team, to, own.data(), MOST, 0)
                          : what == 1 ? all_reduce(team, to, own.data(), MOST, Sum())
                          : what == 2 ? all_gather(team, to, own.data(), MOST)
                                      : all_to_all(team, to, own.data(), MOST);
        CHECK("faults", !done && other.fault(0).what == TANDEM_FAULT_BOUNDS, "%u: %u", what, other.fault(0).what);
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 4) return 2;
    const uint64_t seed = std::strtoull(arguments[1], nullptr, 10);
    const uint32_t pes = uint32_t(std::strtoul(arguments[2], nullptr, 10));
    rounds = std::strtoull(arguments[3], nullptr, 10);
    corrupt = count > 4;
    for (const char* section : {"numbers", "all", "parts", "faults"}) checked[section] = 0;
    World world(pes);
    short_floats(seed);
    for (uint32_t crew = 1; crew <= 3; crew++) all_kinds(world, "all", world.everyone(), seed + 100 * crew, crew, 0, 0);
    // Two teams of the world at once, each in an order of its own; a PE that is in both is in two collectives at a time.
    Random random(seed);
    std::vector<uint32_t> first = world.everyone(), second = first;
    std::shuffle(first.begin(), first.end(), random);
    std::shuffle(second.begin(), second.end(), random);
    first.resize(1 + below(random, pes));
    second.resize(1 + below(random, pes));
    std::thread other([&] { all_kinds(world, "parts", first, seed + 500, 1, 1, World::USABLE / 2); });
    all_kinds(world, "parts", second, seed + 600, 2, 2, 0);
    other.join();
    for (uint32_t pe = 0; pe < pes; pe++) CHECK("faults", world.fault(pe).what == 0, "a fault of PE %u", pe);
    faults(pes);
    report_checks();
    return 0;
}
