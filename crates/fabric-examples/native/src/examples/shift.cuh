#pragma once
// A shift along a ring: every PE writes its number to the next one.
#include "tandem/fabric.cuh"

namespace tandem {
namespace examples {

/// One thread of each PE. Who meets the other PEs afterwards finds the number of the PE before it in `slot`.
TANDEM_FABRIC_FN void shift(const tandem_team& team, int32_t* slot) {
    fabric::p(team, slot, int32_t(team.me), (team.me + 1) % team.size);
}

}  // namespace examples
}  // namespace tandem
