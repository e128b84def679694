// The layout that src/ffi.rs asserts too, made by `cargo xtask bindgen`. Not to be edited.
#include "tandem_fabric.h"

static_assert(sizeof(tandem_region) == 264, "size of tandem_region");
static_assert(offsetof(tandem_region, bytes) == 0, "tandem_region.bytes");
static_assert(offsetof(tandem_region, at) == 8, "tandem_region.at");

static_assert(sizeof(tandem_fault) == 40, "size of tandem_fault");
static_assert(offsetof(tandem_fault, what) == 0, "tandem_fault.what");
static_assert(offsetof(tandem_fault, waiter) == 4, "tandem_fault.waiter");
static_assert(offsetof(tandem_fault, peer) == 8, "tandem_fault.peer");
static_assert(offsetof(tandem_fault, pad) == 12, "tandem_fault.pad");
static_assert(offsetof(tandem_fault, place) == 16, "tandem_fault.place");
static_assert(offsetof(tandem_fault, seen) == 24, "tandem_fault.seen");
static_assert(offsetof(tandem_fault, wanted) == 32, "tandem_fault.wanted");

static_assert(sizeof(tandem_team_state) == 288, "size of tandem_team_state");
static_assert(offsetof(tandem_team_state, faulted) == 0, "tandem_team_state.faulted");
static_assert(offsetof(tandem_team_state, poisoned) == 4, "tandem_team_state.poisoned");
static_assert(offsetof(tandem_team_state, round) == 8, "tandem_team_state.round");
static_assert(offsetof(tandem_team_state, arrived) == 16, "tandem_team_state.arrived");
static_assert(offsetof(tandem_team_state, grid_arrived) == 272, "tandem_team_state.grid_arrived");
static_assert(offsetof(tandem_team_state, grid_round) == 280, "tandem_team_state.grid_round");

static_assert(sizeof(tandem_team) == 104, "size of tandem_team");
static_assert(offsetof(tandem_team, heap) == 0, "tandem_team.heap");
static_assert(offsetof(tandem_team, window) == 8, "tandem_team.window");
static_assert(offsetof(tandem_team, mapped) == 16, "tandem_team.mapped");
static_assert(offsetof(tandem_team, state) == 24, "tandem_team.state");
static_assert(offsetof(tandem_team, timeout_ns) == 32, "tandem_team.timeout_ns");
static_assert(offsetof(tandem_team, fault) == 40, "tandem_team.fault");
static_assert(offsetof(tandem_team, regions) == 48, "tandem_team.regions");
static_assert(offsetof(tandem_team, region_count) == 56, "tandem_team.region_count");
static_assert(offsetof(tandem_team, me) == 60, "tandem_team.me");
static_assert(offsetof(tandem_team, size) == 64, "tandem_team.size");
static_assert(offsetof(tandem_team, pad) == 68, "tandem_team.pad");
static_assert(offsetof(tandem_team, world) == 72, "tandem_team.world");

static_assert(sizeof(tandem_fabric_atomic_args) == 40, "size of tandem_fabric_atomic_args");
static_assert(offsetof(tandem_fabric_atomic_args, word) == 0, "tandem_fabric_atomic_args.word");
static_assert(offsetof(tandem_fabric_atomic_args, value) == 8, "tandem_fabric_atomic_args.value");
static_assert(offsetof(tandem_fabric_atomic_args, expected) == 16, "tandem_fabric_atomic_args.expected");
static_assert(offsetof(tandem_fabric_atomic_args, fetched) == 24, "tandem_fabric_atomic_args.fetched");
static_assert(offsetof(tandem_fabric_atomic_args, op) == 32, "tandem_fabric_atomic_args.op");
static_assert(offsetof(tandem_fabric_atomic_args, kind) == 36, "tandem_fabric_atomic_args.kind");

static_assert(sizeof(tandem_fabric_wait_args) == 48, "size of tandem_fabric_wait_args");
static_assert(offsetof(tandem_fabric_wait_args, words) == 0, "tandem_fabric_wait_args.words");
static_assert(offsetof(tandem_fabric_wait_args, count) == 8, "tandem_fabric_wait_args.count");
static_assert(offsetof(tandem_fabric_wait_args, wanted) == 16, "tandem_fabric_wait_args.wanted");
static_assert(offsetof(tandem_fabric_wait_args, found) == 24, "tandem_fabric_wait_args.found");
static_assert(offsetof(tandem_fabric_wait_args, mode) == 32, "tandem_fabric_wait_args.mode");
static_assert(offsetof(tandem_fabric_wait_args, compare) == 36, "tandem_fabric_wait_args.compare");
static_assert(offsetof(tandem_fabric_wait_args, kind) == 40, "tandem_fabric_wait_args.kind");
static_assert(offsetof(tandem_fabric_wait_args, from) == 44, "tandem_fabric_wait_args.from");

static_assert(sizeof(tandem_fabric_strided_args) == 48, "size of tandem_fabric_strided_args");
static_assert(offsetof(tandem_fabric_strided_args, to) == 0, "tandem_fabric_strided_args.to");
static_assert(offsetof(tandem_fabric_strided_args, from) == 8, "tandem_fabric_strided_args.from");
static_assert(offsetof(tandem_fabric_strided_args, to_stride) == 16, "tandem_fabric_strided_args.to_stride");
static_assert(offsetof(tandem_fabric_strided_args, from_stride) == 24, "tandem_fabric_strided_args.from_stride");
static_assert(offsetof(tandem_fabric_strided_args, count) == 32, "tandem_fabric_strided_args.count");
static_assert(offsetof(tandem_fabric_strided_args, element) == 40, "tandem_fabric_strided_args.element");

static_assert(sizeof(tandem_fabric_store_args) == 32, "size of tandem_fabric_store_args");
static_assert(offsetof(tandem_fabric_store_args, to) == 0, "tandem_fabric_store_args.to");
static_assert(offsetof(tandem_fabric_store_args, value) == 8, "tandem_fabric_store_args.value");
static_assert(offsetof(tandem_fabric_store_args, bytes) == 24, "tandem_fabric_store_args.bytes");
