// What PEs do at the same time, as threads: messages, waits, barriers, atomics, faults, and the examples. Meant to run
// under ThreadSanitizer too: data that no signal orders is a race that it finds.
//
//     threads <seed> <PEs> <rounds> [broken]     broken: a message without its signal's release order, which
//                                                ThreadSanitizer must find
#include "../../../fabric-examples/native/src/examples/shift.cuh"
#include "../../../fabric-examples/native/src/examples/squares.cuh"
#include "../../../fabric-examples/native/src/examples/stencil.cuh"
#include "harness.hpp"

using namespace tandem::examples;

namespace {

uint64_t rounds = 100;

/// Each PE sends to every other by put_signal and answers what it gets; every word is checked.
void messages(World& world, uint32_t pes, uint64_t seed) {
    constexpr uint64_t MOST = 500;
    world.run(world.everyone(), [&](tandem_team team) {
        Random random(seed + team.me);
        const uint64_t box = MOST * 8;
        uint64_t* signals = at<uint64_t>(team, 0);
        uint64_t* credits = at<uint64_t>(team, 512);
        for (uint64_t round = 1; round <= rounds; round++) {
            for (uint32_t k = 1; k < pes; k++) {
                const uint32_t to = (team.me + k) % pes;
                // The box at the receiver is free when it has said so.
                CHECK("messages", signal_wait_until(team, credits + to, Compare::ge, round - 1, to), "no credit");
                std::vector<uint64_t> data(1 + below(random, MOST - 1));
                for (uint64_t i = 1; i < data.size(); i++) data[i] = (round << 32) ^ (uint64_t(team.me) << 56) ^ i;
                data[0] = data.size();
                put_signal(team, at<uint64_t>(team, 1024 + team.me * box), data.data(), data.size(), signals + team.me,
                           round % 2 ? Signal::set : Signal::add, round % 2 ? round : 1, to);
            }
            for (uint32_t k = 1; k < pes; k++) {
                const uint32_t from = (team.me + pes - k) % pes;
                CHECK("messages", signal_wait_until(team, signals + from, Compare::ge, round, from), "no signal");
                const uint64_t* data = at<uint64_t>(team, 1024 + from * box);
                for (uint64_t i = 1; i < data[0]; i++) {
                    CHECK("messages", data[i] == ((round << 32) ^ (uint64_t(from) << 56) ^ i),
                          "word %llu of round %llu", (unsigned long long)i, (unsigned long long)round);
                }
                signal_op<Order::release>(team, credits + team.me, Signal::set, round, from);
            }
        }
    });
}

/// An exchange between two PEs by plain data, a fence, and a relaxed signal; and by messages that carry their data.
void fences(World& world, uint32_t pes, bool broken) {
    if (pes < 2) return;
    world.run({0, pes - 1}, [&](tandem_team team) {
        const uint32_t peer = 1 - team.me;
        uint64_t* data = at<uint64_t>(team, 4096);
        uint64_t* flag = at<uint64_t>(team, 8192);
        Message* message = at<Message>(team, 8256);
        for (uint64_t round = 1; round <= 5 * rounds; round++) {
            for (uint32_t turn = 0; turn < 2; turn++) {
                if (team.me == turn) {
                    // Not a constant length: ThreadSanitizer does not see copies that the compiler inlines.
                    std::vector<uint64_t> values(17 + round % 3, round * 31 + turn);
                    put(team, data, values.data(), values.size(), peer);
                    if (broken) {
                        __atomic_store_n(remote_ptr(team, flag, peer), round, __ATOMIC_RELAXED);
                    } else {
                        round % 2 ? fence(team) : fence(team, Block());
                        signal_op(team, flag, Signal::set, round, peer);
                    }
                    uint64_t value = 0;
                    CHECK("fences", receive(team, message, Compare::eq, round, &value, peer), "no message");
                    CHECK("fences", value == round * 31 + turn, "the message has %llu", (unsigned long long)value);
                } else {
                    CHECK("fences", signal_wait_until(team, flag, Compare::eq, round, peer), "no signal");
                    for (uint32_t i = 0; i < 17; i++) CHECK("fences", data[i] == round * 31 + turn, "word %u", i);
                    send(team, message, data[16], round, peer);
                }
            }
        }
    });
}

/// Store buffering: each writes its word, is quiet, and reads the other's. Both reading the old value is forbidden.
void buffering(World& world, uint32_t pes) {
    if (pes < 2) return;
    std::vector<uint64_t> read[2];
    world.run(
        {0, pes - 1},
        [&](tandem_team team) {
            const uint32_t peer = 1 - team.me;
            uint64_t* mine = at<uint64_t>(team, 16384);
            std::vector<uint64_t> seen;
            for (uint64_t round = 1; round <= 5 * rounds; round++) {
                if (!barrier(team)) return;
                p(team, mine, round, team.me);
                quiet(team);
                seen.push_back(g(team, mine, peer));
            }
            read[team.me] = seen;
        },
        2);
    for (uint64_t i = 0; i < read[0].size(); i++) {
        CHECK("buffering", read[0][i] == i + 1 || read[1][i] == i + 1, "round %llu", (unsigned long long)i);
    }
    CHECK("buffering", read[0].size() == 5 * rounds && read[1].size() == 5 * rounds, "all rounds were run");
}

/// Concurrent atomics whose result does not depend on the order.
void atomics(World& world, uint32_t pes) {
    const uint64_t base = 20000;
    for (uint32_t pe = 0; pe < pes; pe++) std::memset(world.window(pe) + 16384, 0, 16384);
    std::vector<std::vector<uint32_t>> tickets(pes);
    world.run(world.everyone(), [&](tandem_team team) {
        uint64_t* sum = at<uint64_t>(team, base);
        int32_t* counter = at<int32_t>(team, base + 8);
        uint32_t* ticket = at<uint32_t>(team, base + 12);
        uint64_t* bits = at<uint64_t>(team, base + 16);
        uint64_t* toggled = at<uint64_t>(team, base + 24);
        uint64_t* chain = at<uint64_t>(team, base + 32);
        for (uint64_t i = 0; i < rounds; i++) {
            for (uint32_t pe = 0; pe < pes; pe++) {
                atomic_add(team, sum, i * (team.me + 1), pe);
                atomic_inc(team, counter, pe);
                atomic_or(team, bits, uint64_t(1) << (i % 64), pe);
                atomic_xor(team, toggled, uint64_t(1) << team.me, pe);
                // An increment by compare and swap.
                uint64_t seen = atomic_fetch(team, chain, pe);
                for (;;) {
                    const uint64_t found = atomic_compare_swap(team, chain, seen, seen + 3, pe);
                    if (found == seen) break;
                    seen = found;
                }
            }
            tickets[team.me].push_back(atomic_fetch_inc(team, ticket, 0));
        }
    });
    for (uint32_t pe = 0; pe < pes; pe++) {
        const tandem_team team = world.team(world.everyone(), pe);
        const uint64_t half = rounds * (rounds - 1) / 2;
        CHECK("atomics", *at<uint64_t>(team, base) == half * pes * (pes + 1) / 2, "sum of PE %u", pe);
        CHECK("atomics", *at<int32_t>(team, base + 8) == int32_t(rounds * pes), "count of PE %u", pe);
        const uint64_t all = rounds >= 64 ? ~uint64_t(0) : (uint64_t(1) << rounds) - 1;
        CHECK("atomics", *at<uint64_t>(team, base + 16) == all, "bits of PE %u", pe);
        CHECK("atomics", *at<uint64_t>(team, base + 24) == (rounds % 2 ? (uint64_t(1) << pes) - 1 : 0), "toggles of %u",
              pe);
        CHECK("atomics", *at<uint64_t>(team, base + 32) == 3 * rounds * pes, "chain of PE %u", pe);
    }
    std::vector<bool> taken(rounds * pes);
    for (const auto& mine : tickets) {
        for (uint32_t ticket : mine) {
            CHECK("atomics", ticket < taken.size() && !taken[ticket], "ticket %u twice", ticket);
            taken[ticket] = true;
        }
    }
}

/// wait_until_all, _any and _some against words that the other PEs raise in a random order.
void waits(World& world, uint32_t pes, uint64_t seed) {
    constexpr uint32_t WORDS = 24;
    world.run(world.everyone(), [&](tandem_team team) {
        Random random(seed * 77 + team.me);
        int32_t* words = at<int32_t>(team, 40000);
        for (uint64_t round = 1; round <= rounds / 4 + 1; round++) {
            // Each PE raises some of the next one's words, all of the same number.
            const uint32_t next = (team.me + 1) % pes, before = (team.me + pes - 1) % pes;
            std::vector<uint32_t> order(WORDS);
            for (uint32_t i = 0; i < WORDS; i++) order[i] = i;
            std::shuffle(order.begin(), order.end(), random);
            for (uint32_t i : order) p(team, words + i, int32_t(round), next);

            std::vector<int32_t> done(WORDS);
            for (uint32_t left = WORDS; left > 0;) {
                if (below(random, 2)) {
                    const size_t first = below(random, WORDS);
                    const size_t i = wait_until_any(team, words, WORDS, done.data(), Compare::eq, int32_t(round),
                                                    before, first, Block());
                    CHECK("waits", i < WORDS && done[i] == 0, "any gave %zu", i);
                    done[i] = 1;
                    left--;
                } else {
                    size_t found[WORDS];
                    const size_t count = wait_until_some(team, words, WORDS, found, done.data(), Compare::ge,
                                                         int32_t(round), before, Warp());
                    CHECK("waits", count >= 1 && count <= left, "some gave %zu of %u", count, left);
                    for (size_t k = 0; k < count; k++) {
                        CHECK("waits", done[found[k]] == 0, "some gave %zu again", found[k]);
                        done[found[k]] = 1;
                    }
                    left -= uint32_t(count);
                }
            }
            CHECK("waits", wait_until_any(team, words, WORDS, done.data(), Compare::eq, 1) == NONE,
                  "nothing to wait for");
            CHECK("waits", wait_until_some<int32_t>(team, words, 0, nullptr, nullptr, Compare::eq, 1) == 0, "no word");
            CHECK("waits", wait_until_all(team, words, WORDS, nullptr, Compare::eq, int32_t(round), before), "all");
            if (!barrier(team)) return;
        }
    });
}

/// Teams of some PEs in an order of their own, with barriers of several threads a PE.
void barriers(World& world, uint32_t pes, uint64_t seed) {
    Random random(seed);
    for (uint32_t trial = 0; trial < 4; trial++) {
        std::vector<uint32_t> members = world.everyone();
        std::shuffle(members.begin(), members.end(), random);
        members.resize(1 + below(random, pes));
        const uint32_t crew = uint32_t(1 + below(random, 3));
        for (uint32_t pe = 0; pe < pes; pe++) world.reset(pe);
        world.run(
            members,
            [&](tandem_team team) {
                Crew::Shared shared(crew);
                std::vector<std::thread> threads;
                for (uint32_t rank = 0; rank < crew; rank++) {
                    threads.emplace_back([&, rank] {
                        const Crew group(&shared, rank);
                        for (uint64_t round = 1; round <= rounds / 2; round++) {
                            // Everyone writes to everyone, several threads a transfer, and all is there after it.
                            const uint64_t length = 9 + round % 2;
                            std::vector<uint64_t> values(length, round * 1000 + team.me);
                            for (uint32_t pe = 0; pe < team.size; pe++) {
                                put(team, at<uint64_t>(team, 60000 + 80 * team.me), values.data(), length, pe, group);
                            }
                            CHECK("barriers", barrier(team, group), "a barrier failed");
                            for (uint32_t pe = 0; pe < team.size; pe++) {
                                const uint64_t* words = at<uint64_t>(team, 60000 + 80 * pe);
                                for (uint32_t i = 0; i < 9; i++)
                                    CHECK("barriers", words[i] == round * 1000 + pe, "PE %u", pe);
                            }
                            CHECK("barriers", barrier(team, group), "a barrier failed");
                        }
                    });
                }
                for (std::thread& thread : threads) thread.join();
            },
            1);
    }
}

/// Where the host says where allocations end: three of them, of 100, 512 and 1 bytes, and nothing behind.
void ends_of_allocations(uint32_t pes) {
    World world(pes);
    std::vector<uint64_t> ends(World::WINDOW / TANDEM_FABRIC_ALIGN);
    ends[0] = 100, ends[1] = 1024, ends[2] = 1025;
    const auto is_inside = [&](uint64_t offset, uint64_t bytes) {
        for (const auto& [begin, end] : {std::pair<uint64_t, uint64_t>{0, 100}, {512, 1024}, {1024, 1025}}) {
            if (offset >= begin && offset + bytes <= end) return true;
        }
        return false;
    };
    for (uint64_t offset = 0; offset < 1600; offset++) {
        for (uint64_t bytes : {1, 2, 24, 100, 512, 513}) {
            tandem_team team = world.team(world.everyone(), pes - 1);
            team.ends = ends.data();
            world.fault(pes - 1) = {};
            world.reset(pes - 1);
            std::vector<uint8_t> mine(bytes, 7);
            world.window(0)[offset] = 0;
            put(team, at<uint8_t>(team, offset), mine.data(), bytes, 0);
            const tandem_fault& fault = world.fault(pes - 1);
            const bool is_well = fault.what == TANDEM_FAULT_NONE;
            CHECK("faults", is_well == is_inside(offset, bytes), "%llu bytes at %llu", (unsigned long long)bytes,
                  (unsigned long long)offset);
            CHECK("faults", world.window(0)[offset] == (is_well ? 7 : 0), "written or not");
            CHECK("faults",
                  is_well || (fault.place == reinterpret_cast<uint64_t>(world.window(0)) + offset && fault.peer == 0 &&
                              fault.wanted == bytes),
                  "place");
        }
    }
}

/// Operations at a PE without a link to it are faults that name it, and touch nothing; others go on.
void links_that_are_not_there(World& world, uint32_t pes) {
    const uint32_t far = pes - 1;
    for (uint32_t k = 0; k < 6; k++) {
        tandem_team team = world.team(world.everyone(), 0);
        team.apart = 1u << far;
        for (uint32_t pe = 0; pe < pes; pe++) world.reset(pe);
        world.fault(0) = {};
        uint32_t* mine = at<uint32_t>(team, 256);
        uint32_t* theirs = reinterpret_cast<uint32_t*>(world.window(far) + 256);
        *mine = *theirs = 77;
        p(team, mine, 5u, 0);
        CHECK("faults", world.fault(0).what == 0 && *mine == 5, "case %u: its own memory", k);
        if (k == 0) p(team, mine, 6u, far);
        if (k == 1) put(team, mine + 8, mine, 3, far);
        if (k == 2) CHECK("faults", g(team, mine, far) == 0, "a read over no link");
        if (k == 3) CHECK("faults", remote_ptr(team, mine, far) == nullptr, "an address over no link");
        if (k == 4) CHECK("faults", !barrier(team), "a barrier over no link");
        if (k == 5) CHECK("faults", !broadcast(team, mine + 4, mine, 1, 0), "a collective over no link");
        const tandem_fault& fault = world.fault(0);
        CHECK("faults", fault.what == TANDEM_FAULT_APART, "case %u: fault %u", k, fault.what);
        CHECK("faults", fault.waiter == 0 && fault.peer == far, "case %u: peer %u", k, fault.peer);
        if (k == 0) CHECK("faults", fault.place == reinterpret_cast<uint64_t>(theirs) && fault.wanted == 4, "place");
        CHECK("faults", *theirs == 77 && theirs[8] == 0, "case %u: what is not reached was written", k);
        const auto* state = reinterpret_cast<tandem_team_state*>(world.window(far) + team.state);
        CHECK("faults", state->arrived[0] == 0 && state->poisoned == 0, "case %u: its state was written", k);
    }
}

/// Peers that never signal and PEs that never come: the record names them, and the other PEs stop waiting.
void faults(uint32_t pes) {
    for (uint32_t kind = 0; kind < 3; kind++) {
        World world(pes);
        const bool is_barrier = kind == 1 && pes > 1;
        const uint32_t absent = pes - 1, waiter = is_barrier ? 0 : pes / 2;
        world.run(world.everyone(), [&](tandem_team team) {
            uint64_t* word = at<uint64_t>(team, 128);
            if (is_barrier && team.me == absent) return;
            // The others would wait for long if nobody told them.
            team.timeout_ns = team.me == waiter ? 50 * 1000 * 1000 : 100ull * 1000 * 1000 * 1000;
            if (is_barrier && team.me == waiter) {
                // Threads that have not begun are not absent: it waits for what they tell it in the barrier.
                const uint64_t* arrived = detail::own_state(team)->arrived;
                for (uint32_t pe = waiter + 1; pe < absent; pe++) {
                    while (detail::load<Order::relaxed>(arrived + pe) == 0) std::this_thread::yield();
                }
            }
            const bool done = is_barrier ? barrier(team)
                              : kind == 2
                                  ? wait_until_any(team, word, 1, nullptr, Compare::gt, uint64_t(6), absent) != NONE
                                  : signal_wait_until(team, word, Compare::gt, 6, absent);
            CHECK("faults", !done, "a wait for nothing ended well");
            CHECK("faults", !signal_wait_until(team, word, Compare::gt, 6), "a wait after a fault");
        });
        const tandem_fault& fault = world.fault(waiter);
        CHECK("faults", fault.what == (is_barrier ? TANDEM_FAULT_BARRIER : TANDEM_FAULT_WAIT), "fault %u", fault.what);
        CHECK("faults", fault.waiter == waiter, "waiter %u", fault.waiter);
        CHECK("faults", fault.peer == absent, "peer %u", fault.peer);
        if (!is_barrier) {
            CHECK("faults", fault.place == reinterpret_cast<uint64_t>(world.window(waiter)) + 128, "the place");
            CHECK("faults", fault.seen == 0 && fault.wanted == 6, "seen %llu", (unsigned long long)fault.seen);
        }
    }
    // Memory that is not symmetric, a PE that is not there, and where it is checked a range past the end.
    World world(pes);
    uint32_t cases = 2 + (CHECKS ? 3 : 0);
    for (uint32_t k = 0; k < cases; k++) {
        tandem_team team = world.team(world.everyone(), pes - 1);
        uint32_t* last = at<uint32_t>(team, World::USABLE - 4);
        uint32_t mine[8] = {};
        world.fault(pes - 1) = {};
        world.reset(pes - 1);
        if (k == 0) p(team, &mine[0], 1u, 0);
        if (k == 1) CHECK("faults", g(team, last, pes) == 0, "a read of no PE");
        if (k == 2) put(team, last, mine, 2, 0);
        if (k == 3) iget(team, mine, last, 1, 5, 2, 0);
        if (k == 4) GlobalArray<uint32_t>(team, last, 1, 1)[1] = 5;
        const tandem_fault& fault = world.fault(pes - 1);
        CHECK("faults", fault.what == TANDEM_FAULT_BOUNDS, "case %u: fault %u", k, fault.what);
        CHECK("faults",
              fault.waiter == pes - 1 && fault.peer == (k == 1   ? pes
                                                        : k == 4 ? 1 % pes
                                                                 : 0),
              "case %u: peer", k);
        if (k == 2) {
            CHECK("faults", fault.place == reinterpret_cast<uint64_t>(world.window(0)) + World::USABLE - 4, "place");
            CHECK("faults", fault.wanted == 8, "bytes");
        }
    }
    if (CHECKS) ends_of_allocations(pes);
    if (pes > 1) links_that_are_not_there(world, pes);
}

void examples(World& world, uint32_t pes, uint64_t seed) {
    for (uint32_t pe = 0; pe < pes; pe++) world.reset(pe);
    world.run(world.everyone(), [&](tandem_team team) {
        int32_t* slot = at<int32_t>(team, 0);
        shift(team, slot);
        CHECK("examples", barrier(team), "a barrier failed");
        CHECK("examples", *slot == int32_t((team.me + pes - 1) % pes), "PE %u got %d", team.me, *slot);
    });

    // The field as a whole, one point after the other.
    const Stencil shape{37, 5};
    const uint64_t rows = shape.rows * pes, steps = 21;
    Random random(seed);
    std::vector<float> field(rows * shape.columns), start;
    for (float& x : field) x = float(random() % 10000) / 16;
    start = field;
    for (uint64_t step = 0; step < steps; step++) {
        const std::vector<float> old = field;
        for (uint64_t row = 1; row + 1 < rows; row++) {
            for (uint64_t column = 1; column + 1 < shape.columns; column++) {
                const float* x = &old[row * shape.columns + column];
                field[row * shape.columns + column] =
                    0.25f * ((x[-int(shape.columns)] + x[shape.columns]) + (x[-1] + x[1]));
            }
        }
    }
    for (uint32_t variant = 0; variant < 3; variant++) {
        const uint64_t bytes = (shape.rows + 2) * shape.columns * sizeof(float), other = 16 * ((bytes + 15) / 16);
        for (uint32_t pe = 0; pe < pes; pe++) {
            // Halos of the start, too.
            for (uint64_t row = 0; row < shape.rows + 2; row++) {
                const int64_t whole = int64_t(pe * shape.rows + row) - 1;
                float* to = reinterpret_cast<float*>(world.window(pe)) + row * shape.columns;
                for (uint64_t column = 0; column < shape.columns; column++) {
                    to[column] =
                        whole < 0 || whole >= int64_t(rows) ? -1 : start[uint64_t(whole) * shape.columns + column];
                }
            }
            std::memset(world.window(pe) + other, 0xff, bytes);
        }
        world.run(world.everyone(), [&](tandem_team team) {
            float* a = at<float>(team, 0);
            float* b = at<float>(team, other);
            const auto meet = [&] { return barrier(team); };
            if (variant == 2) {
                CHECK("examples", stencil_loop(team, shape, a, b, steps, 0, 1, Thread(), meet), "the loop failed");
            }
            for (uint64_t step = 0; step < steps && variant < 2; step++) {
                if (variant == 0) stencil_by_threads(team, shape, step % 2 ? a : b, step % 2 ? b : a, 0, 1);
                if (variant == 1) stencil_by_blocks(team, shape, step % 2 ? a : b, step % 2 ? b : a, 0, 1, Thread());
                CHECK("examples", meet(), "a barrier failed");
            }
            for (uint64_t row = 1; row <= shape.rows; row++) {
                for (uint64_t column = 0; column < shape.columns; column++) {
                    const float wanted = field[(team.me * shape.rows + row - 1) * shape.columns + column];
                    CHECK("examples", b[shape.at(row, column)] == wanted, "variant %u, row %llu", variant,
                          (unsigned long long)row);
                }
            }
        });
    }

    world.run(world.everyone(), [&](tandem_team team) {
        const uint64_t length = 1000 + pes, block = block_for(length, pes);
        const GlobalArray<uint64_t> a(team, at<uint64_t>(team, 0), length, block);
        const GlobalArray<uint64_t> b(team, at<uint64_t>(team, 65536), length, 1);
        forall(a, Square());
        CHECK("examples", barrier(team), "a barrier failed");
        forall(b, Reverse{a});
        CHECK("examples", barrier(team), "a barrier failed");
        for (uint64_t i = 0; i < length; i++) {
            CHECK("examples", b[i] == (length - 1 - i) * (length - 1 - i), "b[%llu]", (unsigned long long)i);
        }
    });
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 4) return 2;
    const uint64_t seed = std::strtoull(arguments[1], nullptr, 10);
    const uint32_t pes = uint32_t(std::strtoul(arguments[2], nullptr, 10));
    rounds = std::strtoull(arguments[3], nullptr, 10);
    for (const char* section :
         {"messages", "fences", "buffering", "atomics", "waits", "barriers", "faults", "examples"}) {
        checked[section] = 0;
    }
    World world(pes);
    messages(world, pes, seed);
    fences(world, pes, count > 4);
    buffering(world, pes);
    atomics(world, pes);
    waits(world, pes, seed);
    barriers(world, pes, seed);
    for (uint32_t pe = 0; pe < pes; pe++)
        CHECK("faults", world.fault(pe).what == TANDEM_FAULT_NONE, "a fault of PE %u", pe);
    examples(world, pes, seed);
    faults(pes);
    report_checks();
    return 0;
}
