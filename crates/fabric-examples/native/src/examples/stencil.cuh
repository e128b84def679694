#pragma once
// A stencil with halos. The rows of a field are divided among the PEs; each keeps its `rows` rows between two halo
// rows, which its neighbours fill. A step makes every inner point the mean of its four neighbours; the outer columns
// and the first and last row of the whole field stay as they are.
#include "tandem/fabric.cuh"

namespace tandem {
namespace examples {

struct Stencil {
    uint64_t columns;
    /// Rows of each PE, without the halos. The fields have rows + 2 of them.
    uint64_t rows;

    TANDEM_FABRIC_FN uint64_t at(uint64_t row, uint64_t column) const { return row * columns + column; }

    /// The new value of a point; the caller's rows are 1 to `rows`.
    TANDEM_FABRIC_FN float point(const tandem_team& team, const float* from, uint64_t row, uint64_t column) const {
        const bool is_first = team.me == 0 && row == 1, is_last = team.me == team.size - 1 && row == rows;
        if (is_first || is_last || column == 0 || column == columns - 1) return from[at(row, column)];
        return 0.25f * ((from[at(row - 1, column)] + from[at(row + 1, column)]) +
                        (from[at(row, column - 1)] + from[at(row, column + 1)]));
    }
};

/// A step in which each thread sends the points of the outer rows that it computes, one by one.
TANDEM_FABRIC_FN void stencil_by_threads(const tandem_team& team, const Stencil& s, float* to, const float* from,
                                         uint64_t thread, uint64_t threads) {
    for (uint64_t i = thread; i < s.rows * s.columns; i += threads) {
        const uint64_t row = 1 + i / s.columns, column = i % s.columns;
        const float value = s.point(team, from, row, column);
        to[s.at(row, column)] = value;
        if (row == 1 && team.me > 0) fabric::p(team, to + s.at(s.rows + 1, column), value, team.me - 1);
        if (row == s.rows && team.me + 1 < team.size) fabric::p(team, to + s.at(0, column), value, team.me + 1);
    }
}

/// A step in which each block computes whole rows, and then sends an outer row together.
template <class Group> TANDEM_FABRIC_FN void stencil_by_blocks(const tandem_team& team, const Stencil& s, float* to,
                                                               const float* from, uint64_t block, uint64_t blocks,
                                                               Group group) {
    for (uint64_t row = 1 + block; row <= s.rows; row += blocks) {
        for (uint64_t column = group.rank(); column < s.columns; column += group.size()) {
            to[s.at(row, column)] = s.point(team, from, row, column);
        }
        if (row != 1 && row != s.rows) continue;
        // The row is whole when all threads have met.
        group.sync();
        const float* whole = to + s.at(row, 0);
        if (row == 1 && team.me > 0) fabric::put(team, to + s.at(s.rows + 1, 0), whole, s.columns, team.me - 1, group);
        if (row == s.rows && team.me + 1 < team.size) {
            fabric::put(team, to + s.at(0, 0), whole, s.columns, team.me + 1, group);
        }
    }
}

/// All steps. `meet` is a barrier of all threads of all PEs; where it fails, the loop ends. The result is in `b` after
/// an odd number of steps.
template <class Group, class Meet>
TANDEM_FABRIC_FN bool stencil_loop(const tandem_team& team, const Stencil& s, float* a, float* b, uint64_t steps,
                                   uint64_t block, uint64_t blocks, Group group, Meet meet) {
    for (uint64_t step = 0; step < steps; step++) {
        if (step % 2 == 0) {
            stencil_by_blocks(team, s, b, a, block, blocks, group);
        } else {
            stencil_by_blocks(team, s, a, b, block, blocks, group);
        }
        // Halos of the next step have come, and nobody reads any longer what it overwrites.
        if (!meet()) return false;
    }
    return true;
}

}  // namespace examples
}  // namespace tandem
