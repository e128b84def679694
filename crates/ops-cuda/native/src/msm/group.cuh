#pragma once
// The launchers of one group.
#include "reduce.cuh"
#include "rounds.cuh"
#include "table.cuh"

#include <map>
#include <mutex>

namespace tandem {
namespace msm {

inline bool valid(const tandem_msm_table_args* a) { return a && valid(a->shape) && a->points <= a->shape.scalars; }

template <class F> struct TableScratch {
    Xyzz<F>* doubled;
    F* before;
    explicit TableScratch(Arena& arena, uint64_t points) {
        const size_t chunk = points < TABLE_CHUNK ? points : TABLE_CHUNK;
        doubled = arena.take<Xyzz<F>>(chunk);
        before = arena.take<F>(chunk);
    }
};

template <class F> int32_t table_scratch(const tandem_msm_table_args* args, size_t* bytes) {
    if (!bytes || !valid(args)) return TANDEM_INVALID;
    Arena arena(nullptr);
    TableScratch<F>(arena, args->points);
    *bytes = arena.used();
    return TANDEM_OK;
}

template <class F>
int32_t table(const tandem_msm_table_args* args, void* scratch, size_t scratch_bytes, tandem_stream stream) {
    size_t needed = 0;
    if (int32_t status = table_scratch<F>(args, &needed)) return status;
    if (scratch_bytes < needed) return TANDEM_SCRATCH_TOO_SMALL;
    Arena arena(scratch);
    const TableScratch<F> s(arena, args->points);
    Affine<F>* points = reinterpret_cast<Affine<F>*>(args->table);
    const tandem_msm_shape& shape = args->shape;
    for (uint32_t level = 1; level < shape.table_levels; level++) {
        const uint32_t doublings = doublings_to(shape, level);
        for (uint64_t at = 0; at < args->points; at += TABLE_CHUNK) {
            const Affine<F>* in = points + (level - 1) * args->points + at;
            const uint32_t count = uint32_t(args->points - at < TABLE_CHUNK ? args->points - at : TABLE_CHUNK);
            double_points<F><<<div_up(count, 128 * TABLE_BATCH), 128, 0, stream>>>(
                in, points + level * args->points + at, count, doublings, s.doubled, s.before);
        }
    }
    return int32_t(cudaGetLastError());
}

/// The first generation of GPUs on which a kernel can start before the one before it ends.
constexpr int EARLY_START = 9;

/// How `accumulate` is launched, alone and beside the first round, how the rounds are, and threads of a full wave of `sum_chunks`.
struct Launches {
    OneBlockPerSm accumulate, single, rounds;
    uint32_t reduce = 0;
};

/// Sizes and scratch memory of a sum.
template <class F> struct SumPlan {
    static constexpr uint32_t POINTS = BLOCK_OF_POINTS<F>;
    using Field = typename AccumulateTuning<F>::Sum::Field;
    uint32_t buckets = 0;
    OneBlockPerSm accumulate, single, each_round;
    /// Where `rounds.rounds` is not 0: chunks, each with stretches of its own for the threads of `accumulate`.
    Rounds<Field> rounds{};
    uint32_t chunks = 1;
    Reduce reduce;
    Xyzz<F>*bucket, *partial[2], *chunk_rows, *chunk_columns, *rows, *columns;
    uint32_t* partial_key[2];

    /// How many of Chunk::ALL entries are added up one by one beside the first round.
    uint32_t single_share() const { return single.groups ? AccumulateTuning<F>::SINGLE : 0; }
    /// Two a thread: of a chunk, and of all.
    size_t partials_of_chunk() const { return size_t(2) * (single.all() + accumulate.all()); }
    size_t partials() const { return chunks * partials_of_chunk(); }
    static size_t point_shared() { return POINTS * sizeof(Xyzz<F>); }
    static size_t combine_shared() { return COMBINE * (sizeof(Xyzz<F>) + sizeof(uint32_t)); }

    SumPlan(Arena& arena, const tandem_msm_sum_args& args, const Launches& launches)
        : buckets(bucket_count(args.shape)), accumulate(launches.accumulate), each_round(launches.rounds),
          reduce(args.shape, launches.reduce, POINTS) {
        const uint64_t entries = args.shape.scalars * args.shape.windows;
        if (args.rounds) {
            single = launches.single;
            rounds.rounds = args.rounds;
            rounds.chunk = args.chunk;
            chunks = div_up(entries, rounds.chunk);
            // Slots of round k.
            const auto most = [&](uint32_t k) {
                const uint64_t chunk = rounds.chunk < entries ? rounds.chunk : entries;
                return (chunk >> k) + (buckets < chunk ? buckets : chunk) + 1;
            };
            rounds.words = div_up(most(1), 32);
            rounds.placed = arena.take<Placed>(1);
            rounds.part = arena.take<uint32_t>((rounds.rounds + 1) * PLACE_BLOCKS);
            rounds.alone = arena.take<uint2>(size_t(rounds.rounds) * rounds.words);
            rounds.offsets = arena.take<uint32_t>(buckets + 1);
            for (uint32_t k = 0; k < 2; k++)
                rounds.slots[k] = {arena.take<Field>(most(k + 1)), arena.take<Field>(most(k + 1))};
            rounds.before = arena.take<Field>(most(1));
            rounds.product = arena.take<Field>(each_round.all());
        } else {
            accumulate = accumulate.for_threads(div_up(entries, MIN_STRETCH));
        }
        bucket = arena.take<Xyzz<F>>(buckets);
        const size_t slots[2] = {partials(), size_t(2) * div_up(partials(), COMBINE)};
        for (int k = 0; k < 2; k++) {
            partial[k] = arena.take<Xyzz<F>>(slots[k]);
            partial_key[k] = arena.take<uint32_t>(slots[k]);
        }
        chunk_rows = arena.take<Xyzz<F>>(reduce.all.chunks);
        chunk_columns = arena.take<Xyzz<F>>(reduce.all.chunks);
        rows = arena.take<Xyzz<F>>(reduce.all.rows);
        columns = arena.take<Xyzz<F>>(reduce.all.columns);
    }
};

inline bool valid(const tandem_msm_sum_args* a) {
    if (!a || !valid(a->shape) || a->points > a->shape.scalars || a->first > a->shape.scalars - a->points) return false;
    return a->rounds == 0 || (a->rounds <= MAX_ROUNDS && a->chunk >= MIN_CHUNK && a->chunk <= MAX_CHUNK);
}

/// Asks the current device, and sets what its kernels may take.
template <class F> int32_t find_launches(Launches* to) {
    using Field = typename SumPlan<F>::Field;
    using T = AccumulateTuning<F>;
    constexpr size_t shared = T::Sum::BYTES;
    using R = RoundTuning<F>;
    TANDEM_TRY(allow_shared(accumulate<F, PartialPointSource<Field>>, shared * T::GROUPS));
    TANDEM_TRY(allow_shared(multiply_denominators<F, true>, R::template SHARED<true, false> * R::GROUPS));
    TANDEM_TRY(allow_shared(multiply_denominators<F, false>, R::template SHARED<false, false> * R::GROUPS));
    TANDEM_TRY(allow_shared(add_pairs<F, true>, R::template SHARED<true, true> * R::GROUPS));
    TANDEM_TRY(allow_shared(add_pairs<F, false>, R::template SHARED<false, true> * R::GROUPS));
    // All four as the one that takes most, since up and down go over the same slots.
    static_assert(R::template COUNT<true, true> >= R::template COUNT<true, false>);
    TANDEM_TRY(
        one_block_per_sm(add_pairs<F, true>, R::THREADS, R::GROUPS, R::template SHARED<true, true>, &to->rounds));
    TANDEM_TRY(allow_shared(accumulate<F, EntrySource<Field>>, shared * T::GROUPS));
    TANDEM_TRY(one_block_per_sm(accumulate<F, EntrySource<Field>>, T::THREADS, T::GROUPS, shared, &to->accumulate));
    int device = 0, generation = 0;
    TANDEM_TRY(cudaGetDevice(&device));
    TANDEM_TRY(cudaDeviceGetAttribute(&generation, cudaDevAttrComputeCapabilityMajor, device));
    if (T::SINGLE > 0 && generation >= EARLY_START) {
        TANDEM_TRY(
            one_block_per_sm(accumulate<F, EntrySource<Field>>, T::THREADS, T::SINGLE_GROUPS, shared, &to->single));
        // What runs beside the other must find the multiprocessor so divided that it can.
        TANDEM_TRY(cudaFuncSetAttribute(accumulate<F, EntrySource<Field>>,
                                        cudaFuncAttributePreferredSharedMemoryCarveout, 100));
        TANDEM_TRY(
            cudaFuncSetAttribute(multiply_denominators<F, true>, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
    }
    TANDEM_TRY(wave(sum_chunks<F>, 128, 0, &to->reduce));
    TANDEM_TRY(allow_shared(combine_partials<F>, SumPlan<F>::combine_shared()));
    TANDEM_TRY(allow_shared(sum_groups<F>, SumPlan<F>::point_shared()));
    TANDEM_TRY(allow_shared(sum_bits<F>, SumPlan<F>::point_shared()));
    return TANDEM_OK;
}

/// A device's launches, found by its first sum and kept for all others.
template <class F> int32_t launches(Launches* to) {
    static std::mutex one_at_a_time;
    static std::map<int, Launches> found;
    int device = 0;
    TANDEM_TRY(cudaGetDevice(&device));
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    auto at = found.find(device);
    if (at == found.end()) {
        Launches of_device;
        if (int32_t status = find_launches<F>(&of_device)) return status;
        at = found.emplace(device, of_device).first;
    }
    *to = at->second;
    return TANDEM_OK;
}

template <class F> int32_t sum_scratch(const tandem_msm_sum_args* args, size_t* bytes) {
    if (!bytes || !valid(args)) return TANDEM_INVALID;
    Launches to;
    if (int32_t status = launches<F>(&to)) return status;
    Arena arena(nullptr);
    SumPlan<F>(arena, *args, to);
    *bytes = arena.used();
    return TANDEM_OK;
}

/// Calls `work` with the sizes and the scratch memory of a sum.
template <class F, class Work>
int32_t with_plan(const tandem_msm_sum_args* args, void* scratch, size_t scratch_bytes, Work work) {
    if (!valid(args)) return TANDEM_INVALID;
    Launches to;
    if (int32_t status = launches<F>(&to)) return status;
    Arena arena(scratch);
    const SumPlan<F> p(arena, *args, to);
    if (!scratch || scratch_bytes < arena.used()) return TANDEM_SCRATCH_TOO_SMALL;
    return work(p);
}

/// To buckets and to partial sums of them, from number `before` on.
template <class F, class Source>
int32_t start_accumulate(const SumPlan<F>& p, const OneBlockPerSm& each, const Source& source, size_t before,
                         tandem_stream stream) {
    accumulate<F><<<each.multiprocessors, each.block(), each.groups * AccumulateTuning<F>::Sum::BYTES, stream>>>(
        source, p.bucket, p.partial_key[0] + before, p.partial[0] + before);
    return int32_t(cudaGetLastError());
}

/// The first round of a chunk forward, and beside it those of its entries that are added up one by one.
template <class F>
int32_t start_chunk(const SumPlan<F>& p, const tandem_msm_sum_args* args, uint32_t chunk, tandem_stream stream) {
    using T = RoundTuning<F>;
    using Field = typename SumPlan<F>::Field;
    const OneBlockPerSm& each = p.each_round;
    const bool both = p.single_share() > 0;
    if (both) {
        const EntrySource<Field> source{*args, p.buckets, p.rounds.chunk, chunk, p.single_share()};
        if (int32_t status = start_accumulate(p, p.single, source, chunk * p.partials_of_chunk(), stream))
            return status;
    }
    // Starts when all blocks of the other have, one on each multiprocessor, which then has room for one of half the size, and for no second
    // one. The other way round it is 7 % slower, and with neither first one time in two (docs/design/msm.md).
    const uint32_t parts = both && each.groups % 2 == 0 ? 2 : 1, groups = each.groups / parts;
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t launch{};
    launch.gridDim = dim3(each.multiprocessors);
    launch.blockDim = dim3(groups * each.threads);
    launch.dynamicSmemBytes = groups * T::template SHARED<true, false>;
    launch.stream = stream;
    launch.attrs = &early;
    launch.numAttrs = both;
    return int32_t(
        cudaLaunchKernelEx(&launch, multiply_denominators<F, true>, *args, p.rounds, 1u, parts * each.multiprocessors));
}

/// A chunk's entries to buckets and to partial sums of them, in rounds.
template <class F>
int32_t accumulate_chunk(const SumPlan<F>& p, const tandem_msm_sum_args* args, uint32_t chunk, tandem_stream stream) {
    using T = RoundTuning<F>;
    using Field = typename SumPlan<F>::Field;
    const Rounds<Field>& r = p.rounds;
    const OneBlockPerSm& each = p.each_round;
    TANDEM_TRY(cudaMemsetAsync(r.part, 0, (r.rounds + 1) * PLACE_BLOCKS * sizeof(uint32_t), stream));
    TANDEM_TRY(cudaMemsetAsync(r.alone, 0, size_t(r.rounds) * r.words * sizeof(uint2), stream));
    count_slots<<<PLACE_BLOCKS, 1024, 0, stream>>>(args->offsets, p.buckets, r.chunk, chunk, p.single_share(), r.rounds,
                                                   r.part);
    place_slots<<<PLACE_BLOCKS, 1024, 0, stream>>>(args->offsets, p.buckets, r.chunk, chunk, p.single_share(), r.rounds,
                                                   r.words, r.part, r.alone, r.offsets, r.placed);
    if (int32_t status = start_chunk(p, args, chunk, stream)) return status;
    const uint32_t blocks = each.multiprocessors, threads = each.block();
    add_pairs<F, true><<<blocks, threads, each.groups * T::template SHARED<true, true>, stream>>>(*args, r, 1);
    for (uint32_t k = 2; k <= r.rounds; k++) {
        multiply_denominators<F, false>
            <<<blocks, threads, each.groups * T::template SHARED<false, false>, stream>>>(*args, r, k, blocks);
        add_pairs<F, false><<<blocks, threads, each.groups * T::template SHARED<false, true>, stream>>>(*args, r, k);
    }
    const size_t before = chunk * p.partials_of_chunk() + size_t(2) * p.single.all();
    return start_accumulate(p, p.accumulate, PartialPointSource<Field>{r}, before, stream);
}

/// All entries to buckets and to partial sums of them.
template <class F>
int32_t accumulate_all(const SumPlan<F>& p, const tandem_msm_sum_args* args, tandem_stream stream) {
    clear_empty<F><<<div_up(p.buckets, 256), 256, 0, stream>>>(args->offsets, p.buckets, p.bucket);
    if (!args->rounds) {
        const EntrySource<typename SumPlan<F>::Field> all{*args, p.buckets, 0xffffffffu, 0, Chunk::ALL};
        return start_accumulate(p, p.accumulate, all, 0, stream);
    }
    for (uint32_t chunk = 0; chunk < p.chunks; chunk++)
        if (int32_t status = accumulate_chunk(p, args, chunk, stream)) return status;
    return TANDEM_OK;
}

/// Buckets to what is left for the host.
template <class F> int32_t reduce_all(const SumPlan<F>& p, const tandem_msm_sum_args* args, tandem_stream stream) {
    uint32_t count = uint32_t(p.partials()), blocks;
    for (int from = 0;; from ^= 1) {
        blocks = div_up(count, COMBINE);
        combine_partials<F><<<blocks, COMBINE, p.combine_shared(), stream>>>(
            count, p.partial_key[from], p.partial[from], p.partial_key[from ^ 1], p.partial[from ^ 1], p.bucket);
        if (blocks == 1) break;
        count = 2 * blocks;
    }

    const Reduce& r = p.reduce;
    sum_chunks<F><<<div_up(2 * r.all.chunks, 128), 128, 0, stream>>>(r, p.bucket, p.chunk_rows, p.chunk_columns);
    AllGroups<F> groups;
    uint32_t group_blocks = 0;
    for (uint32_t k = 0; k < 2; k++) {
        const ReducePart& d = r.part[k];
        groups.of[2 * k] = {p.chunk_rows + d.before.chunks, p.rows + d.before.rows, d.chunks(), d.l - d.m};
        groups.of[2 * k + 1] = {p.chunk_columns + d.before.chunks, p.columns + d.before.columns, d.chunks(), d.h - d.m};
        if ((1u << (d.l - d.m)) > p.POINTS) return TANDEM_INVALID;
        group_blocks += 2 * div_up(d.chunks(), p.POINTS);
    }
    sum_groups<F><<<group_blocks, p.POINTS, p.point_shared(), stream>>>(groups);
    const uint32_t points = r.part[0].q + 1 + (r.part[1].sets ? r.part[1].q + 1 : 0);
    sum_bits<F><<<dim3(r.part[0].sets, points), p.POINTS, p.point_shared(), stream>>>(
        r, p.rows, p.columns, reinterpret_cast<Xyzz<F>*>(args->sums));
    return int32_t(cudaGetLastError());
}

/// Defines the C functions of a group.
#define TANDEM_MSM_GROUP(name, field)                                                                          \
    int32_t tandem_msm_table_##name##_scratch(const tandem_msm_table_args* args, size_t* bytes) {              \
        return tandem::msm::table_scratch<field>(args, bytes);                                                 \
    }                                                                                                          \
    int32_t tandem_msm_table_##name(const tandem_msm_table_args* args, void* scratch, size_t scratch_bytes,    \
                                    tandem_stream stream) {                                                    \
        return tandem::msm::table<field>(args, scratch, scratch_bytes, stream);                                \
    }                                                                                                          \
    int32_t tandem_msm_sum_##name##_scratch(const tandem_msm_sum_args* args, size_t* bytes) {                  \
        return tandem::msm::sum_scratch<field>(args, bytes);                                                   \
    }                                                                                                          \
    int32_t tandem_msm_accumulate_##name(const tandem_msm_sum_args* args, void* scratch, size_t scratch_bytes, \
                                         tandem_stream stream) {                                               \
        return tandem::msm::with_plan<field>(args, scratch, scratch_bytes, [&](const auto& plan) {             \
            return tandem::msm::accumulate_all(plan, args, stream);                                            \
        });                                                                                                    \
    }                                                                                                          \
    int32_t tandem_msm_reduce_##name(const tandem_msm_sum_args* args, void* scratch, size_t scratch_bytes,     \
                                     tandem_stream stream) {                                                   \
        return tandem::msm::with_plan<field>(args, scratch, scratch_bytes, [&](const auto& plan) {             \
            return tandem::msm::reduce_all(plan, args, stream);                                                \
        });                                                                                                    \
    }

}  // namespace msm
}  // namespace tandem
