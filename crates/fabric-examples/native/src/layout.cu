// The layout that src/ffi.rs asserts too, made by `cargo xtask bindgen`. Not to be edited.
#include "tandem_fabric_examples.h"

static_assert(sizeof(tandem_example_stencil_args) == 40, "size of tandem_example_stencil_args");
static_assert(offsetof(tandem_example_stencil_args, a) == 0, "tandem_example_stencil_args.a");
static_assert(offsetof(tandem_example_stencil_args, b) == 8, "tandem_example_stencil_args.b");
static_assert(offsetof(tandem_example_stencil_args, columns) == 16, "tandem_example_stencil_args.columns");
static_assert(offsetof(tandem_example_stencil_args, rows) == 24, "tandem_example_stencil_args.rows");
static_assert(offsetof(tandem_example_stencil_args, steps) == 32, "tandem_example_stencil_args.steps");

static_assert(sizeof(tandem_meet_args) == 24, "size of tandem_meet_args");
static_assert(offsetof(tandem_meet_args, count) == 0, "tandem_meet_args.count");
static_assert(offsetof(tandem_meet_args, wrong) == 8, "tandem_meet_args.wrong");
static_assert(offsetof(tandem_meet_args, rounds) == 16, "tandem_meet_args.rounds");

static_assert(sizeof(tandem_litmus_args) == 32, "size of tandem_litmus_args");
static_assert(offsetof(tandem_litmus_args, lanes) == 0, "tandem_litmus_args.lanes");
static_assert(offsetof(tandem_litmus_args, saw) == 8, "tandem_litmus_args.saw");
static_assert(offsetof(tandem_litmus_args, wrong) == 16, "tandem_litmus_args.wrong");
static_assert(offsetof(tandem_litmus_args, rounds) == 24, "tandem_litmus_args.rounds");

static_assert(sizeof(tandem_single_args) == 88, "size of tandem_single_args");
static_assert(offsetof(tandem_single_args, to) == 0, "tandem_single_args.to");
static_assert(offsetof(tandem_single_args, from) == 8, "tandem_single_args.from");
static_assert(offsetof(tandem_single_args, signal) == 16, "tandem_single_args.signal");
static_assert(offsetof(tandem_single_args, to_stride) == 24, "tandem_single_args.to_stride");
static_assert(offsetof(tandem_single_args, from_stride) == 32, "tandem_single_args.from_stride");
static_assert(offsetof(tandem_single_args, count) == 40, "tandem_single_args.count");
static_assert(offsetof(tandem_single_args, value) == 48, "tandem_single_args.value");
static_assert(offsetof(tandem_single_args, expected) == 56, "tandem_single_args.expected");
static_assert(offsetof(tandem_single_args, op) == 64, "tandem_single_args.op");
static_assert(offsetof(tandem_single_args, how) == 68, "tandem_single_args.how");
static_assert(offsetof(tandem_single_args, scope) == 72, "tandem_single_args.scope");
static_assert(offsetof(tandem_single_args, element) == 76, "tandem_single_args.element");
static_assert(offsetof(tandem_single_args, peer) == 80, "tandem_single_args.peer");
static_assert(offsetof(tandem_single_args, threads) == 84, "tandem_single_args.threads");

static_assert(sizeof(tandem_collective_args) == 48, "size of tandem_collective_args");
static_assert(offsetof(tandem_collective_args, to) == 0, "tandem_collective_args.to");
static_assert(offsetof(tandem_collective_args, from) == 8, "tandem_collective_args.from");
static_assert(offsetof(tandem_collective_args, done) == 16, "tandem_collective_args.done");
static_assert(offsetof(tandem_collective_args, count) == 24, "tandem_collective_args.count");
static_assert(offsetof(tandem_collective_args, what) == 32, "tandem_collective_args.what");
static_assert(offsetof(tandem_collective_args, how) == 36, "tandem_collective_args.how");
static_assert(offsetof(tandem_collective_args, scope) == 40, "tandem_collective_args.scope");
static_assert(offsetof(tandem_collective_args, root) == 44, "tandem_collective_args.root");
