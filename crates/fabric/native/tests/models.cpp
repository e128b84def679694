// Every operation against a naive model of the memory of all PEs: bytes, changed one at a time. One thread plays all
// PEs in a random order. Then global arrays against a table of owners.
//
//     models <seed> <PEs> [corrupt]      corrupt: changes one bit of the model, which must be found
#include "harness.hpp"

namespace {

struct Triple {
    uint32_t word[3];
};
struct alignas(16) Vector {
    uint64_t word[2];
};

/// The bytes of every PE as they should be.
class Model {
  public:
    Model(World& world, uint32_t pes, Random& random) : world_(world), bytes_(pes) {
        for (uint32_t pe = 0; pe < pes; pe++) {
            bytes_[pe].resize(World::USABLE);
            for (uint8_t& byte : bytes_[pe]) byte = uint8_t(random());
            std::memcpy(world.window(pe), bytes_[pe].data(), World::USABLE);
        }
    }

    uint8_t& byte(uint32_t pe, uint64_t offset) { return bytes_[pe].at(offset); }

    template <class T> T read(uint32_t pe, uint64_t offset) {
        T value;
        for (size_t i = 0; i < sizeof(T); i++) reinterpret_cast<uint8_t*>(&value)[i] = byte(pe, offset + i);
        return value;
    }

    template <class T> void write(uint32_t pe, uint64_t offset, T value) {
        for (size_t i = 0; i < sizeof(T); i++) byte(pe, offset + i) = reinterpret_cast<uint8_t*>(&value)[i];
    }

    void compare(const char* section) {
        for (uint32_t pe = 0; pe < bytes_.size(); pe++) {
            for (uint64_t i = 0; i < World::USABLE; i++) {
                if (world_.window(pe)[i] != bytes_[pe][i]) {
                    CHECK(section, false, "PE %u differs at byte %llu", pe, (unsigned long long)i);
                }
            }
            CHECK(section, true, " ");
        }
    }

  private:
    World& world_;
    std::vector<std::vector<uint8_t>> bytes_;
};

/// One of several threads that share an operation, played one after the other.
struct Share {
    uint32_t rank_, size_;
    uint32_t rank() const { return rank_; }
    uint32_t size() const { return size_; }
    void sync() const {}
    bool all(bool mine) const { return mine; }
};

class Player {
  public:
    Player(World& world, uint32_t pes, Random& random)
        : world_(world), pes_(pes), random_(random), model_(world, pes, random), order_(world.everyone()) {
        // A team whose PEs are not in the world's order.
        std::shuffle(order_.begin(), order_.end(), random_);
    }

    Model& model() { return model_; }

    template <class T> void transfers(uint32_t rounds) {
        for (uint32_t round = 0; round < rounds; round++) {
            pick();
            const uint64_t most = World::USABLE / 4 / sizeof(T);
            const uint64_t sizes[] = {0, 1, 2, 3, 7, 8, 31, 32, 33, 255, 256, 257, 1 + below(random_, most)};
            const uint64_t count = sizes[below(random_, 13)];
            // Two quarters of the window, so that source and target of one PE are apart.
            const uint64_t to = place<T>(0, count), from = place<T>(2, count);
            const uint32_t threads = below(random_, 2) ? 1 : uint32_t(1 + below(random_, 40));
            const bool is_put = below(random_, 2);
            for (uint32_t rank = 0; rank < threads; rank++) {
                const Share share{rank, threads};
                if (is_put) {
                    put(team_, at<T>(team_, to), at<T>(team_, from), count, peer_, share);
                } else {
                    get(team_, at<T>(team_, to), at<T>(team_, from), count, peer_, share);
                }
            }
            const uint32_t source = is_put ? mine() : theirs(), target = is_put ? theirs() : mine();
            for (uint64_t i = 0; i < count * sizeof(T); i++)
                model_.byte(target, to + i) = model_.byte(source, from + i);
        }
        model_.compare("transfers");
    }

    template <class T> void strided(uint32_t rounds) {
        for (uint32_t round = 0; round < rounds; round++) {
            pick();
            const uint64_t count = below(random_, 50), to_stride = 1 + below(random_, 9),
                           from_stride = 1 + below(random_, 9);
            const uint64_t to = place<T>(0, count * to_stride), from = place<T>(2, count * from_stride);
            const uint32_t threads = uint32_t(1 + below(random_, 5));
            const bool is_put = below(random_, 2);
            for (uint32_t rank = 0; rank < threads; rank++) {
                const Share share{rank, threads};
                if (is_put) {
                    iput(team_, at<T>(team_, to), at<T>(team_, from), to_stride, from_stride, count, peer_, share);
                } else {
                    iget(team_, at<T>(team_, to), at<T>(team_, from), to_stride, from_stride, count, peer_, share);
                }
            }
            const uint32_t source = is_put ? mine() : theirs(), target = is_put ? theirs() : mine();
            for (uint64_t i = 0; i < count; i++) {
                model_.write(target, to + i * to_stride * sizeof(T),
                             model_.read<T>(source, from + i * from_stride * sizeof(T)));
            }
        }
        model_.compare("strided");
    }

    template <class T> void single(uint32_t rounds) {
        for (uint32_t round = 0; round < rounds; round++) {
            pick();
            const uint64_t offset = place<T>(0, 1);
            if (below(random_, 2)) {
                T value;
                for (size_t i = 0; i < sizeof(T); i++) reinterpret_cast<uint8_t*>(&value)[i] = uint8_t(random_());
                p(team_, at<T>(team_, offset), value, peer_);
                model_.write(theirs(), offset, value);
            } else {
                const T found = g(team_, at<T>(team_, offset), peer_), wanted = model_.read<T>(theirs(), offset);
                CHECK("single", std::memcmp(&found, &wanted, sizeof(T)) == 0, "g at %llu", (unsigned long long)offset);
            }
            T* there = remote_ptr(team_, at<T>(team_, offset), peer_);
            CHECK("single", there == reinterpret_cast<T*>(world_.window(theirs()) + offset), "remote_ptr");
        }
        model_.compare("single");
    }

    template <class T, Order O> void atomics(uint32_t rounds) {
        for (uint32_t round = 0; round < rounds; round++) {
            pick();
            const uint64_t offset = place<T>(0, 1);
            T* word = at<T>(team_, offset);
            const T value = T(random_()), before = model_.read<T>(theirs(), offset);
            const T expected = below(random_, 2) ? before : T(random_());
            // Unsigned, so that the sum of the model does not overflow.
            using U = typename std::make_unsigned<T>::type;
            T after = before, found = before;
            switch (below(random_, 14)) {
                case 0:
                    atomic_add<O>(team_, word, value, peer_);
                    after = T(U(before) + U(value));
                    break;
                case 1:
                    found = atomic_fetch_add<O>(team_, word, value, peer_);
                    after = T(U(before) + U(value));
                    break;
                case 2:
                    atomic_inc<O>(team_, word, peer_);
                    after = T(U(before) + 1);
                    break;
                case 3:
                    found = atomic_fetch_inc<O>(team_, word, peer_);
                    after = T(U(before) + 1);
                    break;
                case 4:
                    atomic_and<O>(team_, word, value, peer_);
                    after = before & value;
                    break;
                case 5:
                    found = atomic_fetch_and<O>(team_, word, value, peer_);
                    after = before & value;
                    break;
                case 6:
                    atomic_or<O>(team_, word, value, peer_);
                    after = before | value;
                    break;
                case 7:
                    found = atomic_fetch_or<O>(team_, word, value, peer_);
                    after = before | value;
                    break;
                case 8:
                    atomic_xor<O>(team_, word, value, peer_);
                    after = before ^ value;
                    break;
                case 9:
                    found = atomic_fetch_xor<O>(team_, word, value, peer_);
                    after = before ^ value;
                    break;
                case 10:
                    atomic_set<O>(team_, word, value, peer_);
                    after = value;
                    break;
                case 11:
                    found = atomic_swap<O>(team_, word, value, peer_);
                    after = value;
                    break;
                case 12: found = atomic_fetch(team_, word, peer_); break;
                default:
                    found = atomic_compare_swap<O>(team_, word, expected, value, peer_);
                    after = before == expected ? value : before;
            }
            CHECK("atomics", found == before, "round %u found %llx, not %llx", round, (unsigned long long)found,
                  (unsigned long long)before);
            model_.write(theirs(), offset, after);
        }
        model_.compare("atomics");
    }

    /// Signals and tests of words, by the thread that raised them.
    void signals(uint32_t rounds) {
        for (uint32_t round = 0; round < rounds; round++) {
            pick();
            const uint64_t count = below(random_, 300), to = place<uint32_t>(0, count),
                           from = place<uint32_t>(2, count);
            const uint64_t signal = place<uint64_t>(3, 1), value = random_();
            const Signal op = below(random_, 2) ? Signal::set : Signal::add;
            put_signal(team_, at<uint32_t>(team_, to), at<uint32_t>(team_, from), count, at<uint64_t>(team_, signal),
                       op, value, peer_);
            for (uint64_t i = 0; i < count * 4; i++) model_.byte(theirs(), to + i) = model_.byte(mine(), from + i);
            const uint64_t after = op == Signal::set ? value : model_.read<uint64_t>(theirs(), signal) + value;
            model_.write(theirs(), signal, after);
            const tandem_team there = world_.team(order_, peer_);
            CHECK("signals", signal_fetch(there, at<uint64_t>(there, signal)) == after, "signal of round %u", round);
            compare<int64_t>(there, signal);
            compare<uint64_t>(there, signal);
            compare<int32_t>(there, signal);
            compare<uint32_t>(there, signal);
        }
        model_.compare("signals");
    }

  private:
    template <class T> void compare(const tandem_team& there, uint64_t offset) {
        const T word = model_.read<T>(theirs(), offset);
        const T others[] = {
            word, T(word + 1u), T(word - 1u), T(0), std::numeric_limits<T>::max(), std::numeric_limits<T>::min()};
        const T wanted = others[below(random_, 6)];
        const bool truth[] = {word == wanted, word != wanted, word > wanted,
                              word >= wanted, word < wanted,  word <= wanted};
        for (int32_t kind = TANDEM_CMP_EQ; kind <= TANDEM_CMP_LE; kind++) {
            CHECK("signals", test(there, at<T>(there, offset), Compare(kind), wanted) == truth[kind], "comparison %d",
                  kind);
            if (truth[kind]) {
                CHECK("signals", wait_until(there, at<T>(there, offset), Compare(kind), wanted), "a wait that is over");
            }
        }
    }

    void pick() {
        team_ = world_.team(order_, uint32_t(below(random_, pes_)));
        peer_ = uint32_t(below(random_, pes_));
    }
    uint32_t mine() const { return order_[team_.me]; }
    uint32_t theirs() const { return order_[peer_]; }

    /// A place for `count` elements in the given quarter of the window, at any alignment that T allows.
    template <class T> uint64_t place(uint64_t quarter, uint64_t count) {
        const uint64_t room = (World::USABLE / 4 - count * sizeof(T)) / alignof(T) + (count == 0 ? 0 : 1);
        return quarter * (World::USABLE / 4) + below(random_, room) * alignof(T);
    }

    World& world_;
    uint32_t pes_;
    Random& random_;
    Model model_;
    std::vector<uint32_t> order_;
    tandem_team team_;
    uint32_t peer_ = 0;
};

/// A global array against a table of who has which element, made by dealing.
void arrays(Random& random, uint32_t pes) {
    World world(pes);
    for (uint32_t round = 0; round < 60; round++) {
        const uint64_t lengths[] = {0, 1, 2, pes, pes + 1ull, 255, 256, 257, 1 + below(random, 4000)};
        const uint64_t length = lengths[below(random, 9)];
        const uint64_t blocks[] = {1, 2, 3, 16, block_for(length, pes), 1 + below(random, length + 3), length + 7};
        const uint64_t block = blocks[below(random, 7)], other_block = blocks[below(random, 7)];
        const uint64_t offset = 16 * below(random, 100);

        std::vector<std::pair<uint32_t, uint64_t>> table;
        std::vector<uint64_t> dealt(pes);
        for (uint64_t i = 0; i < length; i++) {
            const uint32_t pe = uint32_t(i / block % pes);
            table.emplace_back(pe, dealt[pe]++);
        }
        std::vector<GlobalArray<uint64_t>> views, others;
        for (uint32_t me = 0; me < pes; me++) {
            const tandem_team team = world.team(world.everyone(), me);
            views.emplace_back(team, at<uint64_t>(team, offset), length, block);
            others.emplace_back(team, at<uint64_t>(team, World::USABLE / 2), length, other_block);
            CHECK("arrays", views[me].local_length() == dealt[me], "PE %u has %llu", me, (unsigned long long)dealt[me]);
            CHECK("arrays", dealt[me] <= part_for(length, block, pes), "the part has room");
        }
        for (uint64_t i = 0; i < length; i++) {
            uint64_t place;
            const auto& view = views[below(random, pes)];
            const uint32_t owner = view.owner(i, place);
            CHECK("arrays", owner == table[i].first && place == table[i].second, "element %llu", (unsigned long long)i);
            CHECK("arrays", views[owner].index_of(place) == i, "element %llu back", (unsigned long long)i);
            uint64_t* there = reinterpret_cast<uint64_t*>(world.window(owner) + offset) + place;
            const uint64_t value = random();
            view[i] = value;
            CHECK("arrays", *there == value && &view[i] == there, "a[%llu]", (unsigned long long)i);
        }
        // forall touches each element once, where it lives.
        std::vector<uint64_t> copy(length);
        for (uint64_t i = 0; i < length; i++) copy[i] = views[0][i];
        for (uint32_t me = 0; me < pes; me++) forall(views[me], [](uint64_t i, uint64_t& x) { x = 3 * x + i; });
        for (uint64_t i = 0; i < length; i++) {
            CHECK("arrays", views[0][i] == 3 * copy[i] + i, "forall at %llu", (unsigned long long)i);
        }
        // Assignment between distributions, by several workers.
        for (uint32_t me = 0; me < pes; me++) {
            const uint64_t workers = 1 + below(random, 7);
            for (uint64_t worker = 0; worker < workers; worker++) assign_local(others[me], views[me], worker, workers);
        }
        for (uint64_t i = 0; i < length; i++) {
            CHECK("arrays", others[0][i] == views[0][i], "assignment at %llu", (unsigned long long)i);
        }
    }
    // The division at its borders.
    const uint64_t edges[] = {1, 2, 3, 5, 63, 64, 65, (1ull << 32) - 1, 1ull << 32, (1ull << 63) + 1, ~0ull - 1, ~0ull};
    for (uint64_t by : edges) {
        const detail::Divisor divisor(by);
        for (uint64_t k = 0; k < 2000; k++) {
            const uint64_t x = k < 12 ? edges[k] : k < 24 ? edges[k - 12] - 1 : random() >> below(random, 64);
            uint64_t rest;
            const uint64_t quotient = divisor.divide(x, rest);
            CHECK("arrays", quotient == x / by && rest == x % by, "%llu / %llu", (unsigned long long)x,
                  (unsigned long long)by);
        }
    }
}

/// Memory outside the windows that was registered.
void regions(Random& random, uint32_t pes) {
    World world(pes);
    std::vector<std::vector<uint32_t>> buffers(pes, std::vector<uint32_t>(1000));
    tandem_region table[2] = {};
    table[1].bytes = 4000;
    for (uint32_t pe = 0; pe < pes; pe++) table[1].at[pe] = reinterpret_cast<uint64_t>(buffers[pe].data());
    for (uint32_t round = 0; round < 500; round++) {
        const uint32_t me = uint32_t(below(random, pes)), peer = uint32_t(below(random, pes));
        tandem_team team = world.team(world.everyone(), me);
        team.regions = table;
        team.region_count = 2;
        const uint64_t i = below(random, 1000);
        const uint32_t value = uint32_t(random());
        p(team, &buffers[me][i], value, peer);
        CHECK("regions", buffers[peer][i] == value, "p to a region");
        CHECK("regions", remote_ptr(team, &buffers[me][i], peer) == &buffers[peer][i], "remote_ptr of a region");
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 3) return 2;
    Random random(std::strtoull(arguments[1], nullptr, 10));
    const uint32_t pes = uint32_t(std::strtoul(arguments[2], nullptr, 10));
    for (const char* section : {"transfers", "strided", "single", "atomics", "signals", "arrays", "regions"})
        checked[section] = 0;
    World world(pes);
    Player player(world, pes, random);
    player.transfers<uint8_t>(200);
    player.transfers<uint16_t>(200);
    player.transfers<uint32_t>(200);
    player.transfers<double>(200);
    player.transfers<Triple>(200);
    player.transfers<Vector>(200);
    if (count > 3) player.model().byte(pes - 1, below(random, World::USABLE)) ^= 1;
    player.strided<uint8_t>(100);
    player.strided<uint32_t>(100);
    player.strided<Triple>(100);
    player.strided<Vector>(100);
    player.single<uint8_t>(300);
    player.single<uint16_t>(300);
    player.single<float>(300);
    player.single<int64_t>(300);
    player.single<Triple>(300);
    player.atomics<int32_t, Order::relaxed>(500);
    player.atomics<uint32_t, Order::release>(500);
    player.atomics<int64_t, Order::release>(500);
    player.atomics<uint64_t, Order::relaxed>(500);
    player.signals(300);
    arrays(random, pes);
    regions(random, pes);
    for (uint32_t pe = 0; pe < pes; pe++)
        CHECK("regions", world.fault(pe).what == TANDEM_FAULT_NONE, "a fault of PE %u", pe);
    report_checks();
    return 0;
}
