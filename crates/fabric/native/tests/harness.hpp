#pragma once
// PEs as threads of one process, with windows of ordinary memory, and a count of what was checked.
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tandem/fabric.cuh"

using namespace tandem::fabric;

/// Checks by the section of the program that made them.
inline std::map<std::string, std::atomic<uint64_t>> checked;

#define CHECK(SECTION, CONDITION, ...)                                           \
    do {                                                                         \
        /* Relaxed: a count must not order what the threads do. */               \
        checked.at(SECTION).fetch_add(1, std::memory_order_relaxed);             \
        if (!(CONDITION)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #CONDITION); \
            std::fprintf(stderr, __VA_ARGS__);                                   \
            std::fprintf(stderr, "\n");                                          \
            std::_Exit(1);                                                       \
        }                                                                        \
    } while (0)

using Random = std::mt19937_64;

inline uint64_t below(Random& random, uint64_t bound) { return random() % bound; }

/// Anonymous memory: a window for each PE of a world.
class World {
  public:
    static constexpr uint64_t WINDOW = 1 << 20;
    /// States of four teams, with the boxes of 8 PEs each, lie at the end of the window.
    static constexpr uint64_t STATE = TANDEM_FABRIC_BOXES + 2 * 8 * TANDEM_FABRIC_BOX * sizeof(Message);
    static constexpr uint64_t USABLE = WINDOW - 4 * STATE;

    explicit World(uint32_t pes) : pes_(pes), faults_(pes) {
        void* memory = mmap(nullptr, pes * WINDOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) std::abort();
        memory_ = static_cast<uint8_t*>(memory);
    }
    World(const World&) = delete;
    ~World() { munmap(memory_, pes_ * WINDOW); }

    uint8_t* window(uint32_t pe) const { return memory_ + pe * WINDOW; }
    /// Forgets the barriers and faults of all teams of a PE.
    void reset(uint32_t pe) { std::memset(window(pe) + USABLE, 0, WINDOW - USABLE); }
    tandem_fault& fault(uint32_t pe) { return faults_[pe]; }

    /// The team of some PEs of the world, as its PE `me` sees it. `slot` tells the teams of one world apart.
    tandem_team team(const std::vector<uint32_t>& members, uint32_t me, uint32_t slot = 0) {
        tandem_team team = {};
        team.heap = reinterpret_cast<uint64_t>(memory_);
        team.window = WINDOW;
        team.own = team.heap + members[me] * WINDOW;
        team.mapped = USABLE;
        team.state = USABLE + slot * STATE;
        team.timeout_ns = 20ull * 1000 * 1000 * 1000;
        team.fault = &faults_[members[me]];
        team.me = me;
        team.size = uint32_t(members.size());
        for (uint32_t pe = 0; pe < team.size; pe++) team.world[pe] = uint8_t(members[pe]);
        return team;
    }

    /// All PEs of the world, in their order.
    std::vector<uint32_t> everyone() const {
        std::vector<uint32_t> all(pes_);
        for (uint32_t pe = 0; pe < pes_; pe++) all[pe] = pe;
        return all;
    }

    /// Calls f(team) on a thread for each member, at the same time.
    void run(const std::vector<uint32_t>& members, const std::function<void(tandem_team)>& f, uint32_t slot = 0) {
        std::vector<std::thread> threads;
        for (uint32_t me = 0; me < members.size(); me++) threads.emplace_back(f, team(members, me, slot));
        for (std::thread& thread : threads) thread.join();
    }

  private:
    uint32_t pes_;
    uint8_t* memory_;
    std::vector<tandem_fault> faults_;
    static_assert(sizeof(tandem_team_state) <= TANDEM_FABRIC_BOXES, "the boxes begin behind it");
};

/// Threads that share one PE's operations, as the threads of a block do.
class Crew {
  public:
    struct Shared {
        explicit Shared(uint32_t size) : size(size) {}
        uint32_t size;
        std::atomic<uint32_t> waiting{0};
        std::atomic<uint32_t> round{0};
        std::atomic<uint32_t> failed[2] = {};
        std::atomic<uint64_t> first{0};
    };
    Crew(Shared* shared, uint32_t rank) : shared_(shared), rank_(rank) {}
    uint32_t rank() const { return rank_; }
    uint32_t size() const { return shared_->size; }
    void sync() const { all(true); }
    bool all(bool mine) const {
        const uint32_t round = shared_->round.load();
        std::atomic<uint32_t>& failed = shared_->failed[round % 2];
        if (!mine) failed++;
        if (++shared_->waiting == shared_->size) {
            shared_->waiting = 0;
            // The count of the round before is no longer read.
            shared_->failed[(round + 1) % 2] = 0;
            shared_->round = round + 1;
        } else {
            while (shared_->round.load() == round) std::this_thread::yield();
        }
        return failed.load() == 0;
    }

    uint64_t broadcast(uint64_t mine) const {
        // All have read what the call before this one left.
        sync();
        if (rank_ == 0) shared_->first = mine;
        sync();
        return shared_->first;
    }

  private:
    Shared* shared_;
    uint32_t rank_;
};

/// The address of `offset` bytes into this PE's window.
template <class T> T* at(const tandem_team& team, uint64_t offset) {
    return reinterpret_cast<T*>(team.heap + team.world[team.me] * team.window + offset);
}

/// Prints what was checked, a section a line.
inline void report_checks() {
    for (const auto& [section, count] : checked) std::printf("%s %llu\n", section.c_str(), (unsigned long long)count);
}
