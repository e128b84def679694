#pragma once
// A global array: filled by forall where its elements live, then read by index from everywhere.
#include "tandem/fabric.cuh"

namespace tandem {
namespace examples {

/// a[i] = i * i
struct Square {
    TANDEM_FABRIC_FN void operator()(uint64_t i, uint64_t& element) const { element = i * i; }
};

/// b[i] = a[n - 1 - i]: most elements come from another PE.
struct Reverse {
    fabric::GlobalArray<uint64_t> from;
    TANDEM_FABRIC_FN void operator()(uint64_t i, uint64_t& element) const { element = from[from.length() - 1 - i]; }
};

}  // namespace examples
}  // namespace tandem
