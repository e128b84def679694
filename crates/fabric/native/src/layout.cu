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

static_assert(sizeof(tandem_team_state) == 312, "size of tandem_team_state");
static_assert(offsetof(tandem_team_state, faulted) == 0, "tandem_team_state.faulted");
static_assert(offsetof(tandem_team_state, poisoned) == 4, "tandem_team_state.poisoned");
static_assert(offsetof(tandem_team_state, round) == 8, "tandem_team_state.round");
static_assert(offsetof(tandem_team_state, arrived) == 16, "tandem_team_state.arrived");
static_assert(offsetof(tandem_team_state, grid_arrived) == 272, "tandem_team_state.grid_arrived");
static_assert(offsetof(tandem_team_state, grid_round) == 280, "tandem_team_state.grid_round");
static_assert(offsetof(tandem_team_state, left) == 288, "tandem_team_state.left");
static_assert(offsetof(tandem_team_state, pad) == 292, "tandem_team_state.pad");
static_assert(offsetof(tandem_team_state, collectives) == 296, "tandem_team_state.collectives");
static_assert(offsetof(tandem_team_state, collectives_left) == 304, "tandem_team_state.collectives_left");

static_assert(sizeof(tandem_team) == 120, "size of tandem_team");
static_assert(offsetof(tandem_team, heap) == 0, "tandem_team.heap");
static_assert(offsetof(tandem_team, window) == 8, "tandem_team.window");
static_assert(offsetof(tandem_team, own) == 16, "tandem_team.own");
static_assert(offsetof(tandem_team, mapped) == 24, "tandem_team.mapped");
static_assert(offsetof(tandem_team, state) == 32, "tandem_team.state");
static_assert(offsetof(tandem_team, timeout_ns) == 40, "tandem_team.timeout_ns");
static_assert(offsetof(tandem_team, fault) == 48, "tandem_team.fault");
static_assert(offsetof(tandem_team, regions) == 56, "tandem_team.regions");
static_assert(offsetof(tandem_team, ends) == 64, "tandem_team.ends");
static_assert(offsetof(tandem_team, region_count) == 72, "tandem_team.region_count");
static_assert(offsetof(tandem_team, me) == 76, "tandem_team.me");
static_assert(offsetof(tandem_team, size) == 80, "tandem_team.size");
static_assert(offsetof(tandem_team, apart) == 84, "tandem_team.apart");
static_assert(offsetof(tandem_team, world) == 88, "tandem_team.world");

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

static_assert(sizeof(tandem_array) == 24, "size of tandem_array");
static_assert(offsetof(tandem_array, part) == 0, "tandem_array.part");
static_assert(offsetof(tandem_array, length) == 8, "tandem_array.length");
static_assert(offsetof(tandem_array, block) == 16, "tandem_array.block");

static_assert(sizeof(tandem_bench_transfer_args) == 56, "size of tandem_bench_transfer_args");
static_assert(offsetof(tandem_bench_transfer_args, to) == 0, "tandem_bench_transfer_args.to");
static_assert(offsetof(tandem_bench_transfer_args, from) == 8, "tandem_bench_transfer_args.from");
static_assert(offsetof(tandem_bench_transfer_args, bytes) == 16, "tandem_bench_transfer_args.bytes");
static_assert(offsetof(tandem_bench_transfer_args, room) == 24, "tandem_bench_transfer_args.room");
static_assert(offsetof(tandem_bench_transfer_args, rounds) == 32, "tandem_bench_transfer_args.rounds");
static_assert(offsetof(tandem_bench_transfer_args, blocks) == 36, "tandem_bench_transfer_args.blocks");
static_assert(offsetof(tandem_bench_transfer_args, threads) == 40, "tandem_bench_transfer_args.threads");
static_assert(offsetof(tandem_bench_transfer_args, peer) == 44, "tandem_bench_transfer_args.peer");
static_assert(offsetof(tandem_bench_transfer_args, is_get) == 48, "tandem_bench_transfer_args.is_get");
static_assert(offsetof(tandem_bench_transfer_args, scope) == 52, "tandem_bench_transfer_args.scope");

static_assert(sizeof(tandem_bench_pingpong_args) == 32, "size of tandem_bench_pingpong_args");
static_assert(offsetof(tandem_bench_pingpong_args, word) == 0, "tandem_bench_pingpong_args.word");
static_assert(offsetof(tandem_bench_pingpong_args, data) == 8, "tandem_bench_pingpong_args.data");
static_assert(offsetof(tandem_bench_pingpong_args, wrong) == 16, "tandem_bench_pingpong_args.wrong");
static_assert(offsetof(tandem_bench_pingpong_args, rounds) == 24, "tandem_bench_pingpong_args.rounds");

static_assert(sizeof(tandem_bench_inside_args) == 32, "size of tandem_bench_inside_args");
static_assert(offsetof(tandem_bench_inside_args, from) == 0, "tandem_bench_inside_args.from");
static_assert(offsetof(tandem_bench_inside_args, to) == 8, "tandem_bench_inside_args.to");
static_assert(offsetof(tandem_bench_inside_args, wrong) == 16, "tandem_bench_inside_args.wrong");
static_assert(offsetof(tandem_bench_inside_args, rounds) == 24, "tandem_bench_inside_args.rounds");

static_assert(sizeof(tandem_exec_endpoint) == 32, "size of tandem_exec_endpoint");
static_assert(offsetof(tandem_exec_endpoint, at) == 0, "tandem_exec_endpoint.at");
static_assert(offsetof(tandem_exec_endpoint, produced) == 8, "tandem_exec_endpoint.produced");
static_assert(offsetof(tandem_exec_endpoint, consumed) == 16, "tandem_exec_endpoint.consumed");
static_assert(offsetof(tandem_exec_endpoint, peer) == 24, "tandem_exec_endpoint.peer");

static_assert(sizeof(tandem_exec_transfer) == 48, "size of tandem_exec_transfer");
static_assert(offsetof(tandem_exec_transfer, bytes) == 0, "tandem_exec_transfer.bytes");
static_assert(offsetof(tandem_exec_transfer, touches) == 8, "tandem_exec_transfer.touches");
static_assert(offsetof(tandem_exec_transfer, chunk) == 16, "tandem_exec_transfer.chunk");
static_assert(offsetof(tandem_exec_transfer, slots) == 24, "tandem_exec_transfer.slots");
static_assert(offsetof(tandem_exec_transfer, first) == 32, "tandem_exec_transfer.first");
static_assert(offsetof(tandem_exec_transfer, sources) == 36, "tandem_exec_transfer.sources");
static_assert(offsetof(tandem_exec_transfer, targets) == 40, "tandem_exec_transfer.targets");
static_assert(offsetof(tandem_exec_transfer, notifies) == 44, "tandem_exec_transfer.notifies");

static_assert(sizeof(tandem_exec_table) == 64, "size of tandem_exec_table");
static_assert(offsetof(tandem_exec_table, transfers) == 0, "tandem_exec_table.transfers");
static_assert(offsetof(tandem_exec_table, endpoints) == 8, "tandem_exec_table.endpoints");
static_assert(offsetof(tandem_exec_table, awaited) == 16, "tandem_exec_table.awaited");
static_assert(offsetof(tandem_exec_table, rounds) == 24, "tandem_exec_table.rounds");
static_assert(offsetof(tandem_exec_table, ready) == 32, "tandem_exec_table.ready");
static_assert(offsetof(tandem_exec_table, touched_by) == 40, "tandem_exec_table.touched_by");
static_assert(offsetof(tandem_exec_table, transfer_count) == 48, "tandem_exec_table.transfer_count");
static_assert(offsetof(tandem_exec_table, awaited_count) == 52, "tandem_exec_table.awaited_count");
static_assert(offsetof(tandem_exec_table, kind) == 56, "tandem_exec_table.kind");
static_assert(offsetof(tandem_exec_table, op) == 60, "tandem_exec_table.op");

static_assert(sizeof(tandem_exec_messages) == 40, "size of tandem_exec_messages");
static_assert(offsetof(tandem_exec_messages, workers) == 0, "tandem_exec_messages.workers");
static_assert(offsetof(tandem_exec_messages, rounds) == 8, "tandem_exec_messages.rounds");
static_assert(offsetof(tandem_exec_messages, worker_count) == 16, "tandem_exec_messages.worker_count");
static_assert(offsetof(tandem_exec_messages, words) == 20, "tandem_exec_messages.words");
static_assert(offsetof(tandem_exec_messages, rows) == 24, "tandem_exec_messages.rows");
static_assert(offsetof(tandem_exec_messages, kind) == 28, "tandem_exec_messages.kind");
static_assert(offsetof(tandem_exec_messages, op) == 32, "tandem_exec_messages.op");
static_assert(offsetof(tandem_exec_messages, pad) == 36, "tandem_exec_messages.pad");

static_assert(sizeof(tandem_exec_move) == 152, "size of tandem_exec_move");
static_assert(offsetof(tandem_exec_move, at) == 0, "tandem_exec_move.at");
static_assert(offsetof(tandem_exec_move, bytes) == 128, "tandem_exec_move.bytes");
static_assert(offsetof(tandem_exec_move, sources) == 136, "tandem_exec_move.sources");
static_assert(offsetof(tandem_exec_move, targets) == 140, "tandem_exec_move.targets");
static_assert(offsetof(tandem_exec_move, kind) == 144, "tandem_exec_move.kind");
static_assert(offsetof(tandem_exec_move, op) == 148, "tandem_exec_move.op");

static_assert(sizeof(tandem_exec_done) == 64, "size of tandem_exec_done");
static_assert(offsetof(tandem_exec_done, number) == 0, "tandem_exec_done.number");
static_assert(offsetof(tandem_exec_done, pad) == 8, "tandem_exec_done.pad");

static_assert(sizeof(tandem_exec_mailbox) == 5952, "size of tandem_exec_mailbox");
static_assert(offsetof(tandem_exec_mailbox, command) == 0, "tandem_exec_mailbox.command");
static_assert(offsetof(tandem_exec_mailbox, done) == 768, "tandem_exec_mailbox.done");
static_assert(offsetof(tandem_exec_mailbox, ended) == 5888, "tandem_exec_mailbox.ended");
static_assert(offsetof(tandem_exec_mailbox, pad) == 5896, "tandem_exec_mailbox.pad");
