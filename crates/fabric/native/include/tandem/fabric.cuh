#pragma once
// The fabric inside kernels, for CUDA C++ and, with threads for PEs, for any C++17 compiler. Header only.
//
// A kernel takes a tandem_team by value. Addresses are the caller's own; the PE says whose memory is meant:
//
//     #include "tandem/fabric.cuh"
//     namespace fabric = tandem::fabric;
//
//     __global__ void shift(tandem_team team, int* slot) {
//         fabric::p(team, slot, int(team.me), (team.me + 1) % team.size);
//     }
//
// PEs whose bits are set in team.apart have no memory here: the driver refuses it, and an access fails the device.
//
// docs/contracts/signals.md has the memory order of each operation.
#include "fabric/array.cuh"
#include "fabric/atomic.cuh"
#include "fabric/barrier.cuh"
#include "fabric/collective.cuh"
#include "fabric/number.cuh"
#include "fabric/signal.cuh"
#include "fabric/transfer.cuh"
#include "fabric/wait.cuh"
