// How calls belong together: groups, threads, ranks that do not come, captures, errors, faults, ends. Each part says what NCCL must have got.
//
//     calls PART
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define fail(...) (fprintf(stderr, __VA_ARGS__), fprintf(stderr, " at line %d\n", __LINE__), exit(1))
#define IS(what, wanted)                                                                    \
    do {                                                                                    \
        long found_ = (long)(what), wanted_ = (long)(wanted);                               \
        if (found_ != wanted_) fail("%s: found %ld, expected %ld", #what, found_, wanted_); \
    } while (0)
#define OK(what) IS(what, ncclSuccess)

enum { RANKS = 3, COUNT = 100 };
static ncclComm_t comms[RANKS];
static int from[RANKS][COUNT], to[RANKS][COUNT];
static unsigned fine[RANKS], captured[RANKS] = {1, 1, 1}, faulty[RANKS] = {2, 2, 2};

// Lines of the stand-in's log that have a text.
static int lines(const char* text) {
    FILE* file = fopen(getenv("STAND_IN_LOG"), "r");
    char line[256];
    int count = 0;
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) count += strstr(line, text) != 0;
    fclose(file);
    return count;
}

static ncclResult_t reduce(int rank, size_t count, unsigned* streams) {
    return ncclAllReduce(from[rank], to[rank], count, ncclInt32, ncclSum, comms[rank], (cudaStream_t)&streams[rank]);
}
static ncclResult_t group(size_t count, unsigned* streams) {
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) OK(reduce(r, count, streams));
    return ncclGroupEnd();
}

static void fresh(void) {
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT; i++) from[r][i] = rand(), to[r][i] = -1;
}
// Whether the sums of the first elements are there, and nothing else was touched.
static int is_done(int count) {
    int done = 0, untouched = 0;
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT; i++) {
            unsigned sum = 0;
            for (int k = 0; k < RANKS; k++) sum += (unsigned)from[k][i];
            if (i < count && to[r][i] == (int)sum) done++;
            else if (to[r][i] == -1) untouched++;
            else fail("element %d of rank %d is %d, neither %d nor what was there", i, r, to[r][i], (int)sum);
        }
    if (done != 0 && done != RANKS * count) fail("%d of %d sums are there", done, RANKS * count);
    return done != 0;
}
// Twice: what is new goes to NCCL.
static int is_taken(size_t count, unsigned* streams) {
    for (int i = 0; i < 2; i++) {
        fresh();
        OK(group(count, streams));
    }
    return is_done((int)count);
}
static void init_all(void) { OK(ncclCommInitAll(comms, RANKS, 0)); }
static void destroy_all(void) {
    for (int r = 0; r < RANKS; r++) OK(ncclCommDestroy(comms[r]));
}

static ncclUniqueId id;
static void* by_thread(void* rank) {
    int r = (int)(long)rank;
    OK(ncclCommInitRank(&comms[r], RANKS, id, r));
    return 0;
}
static void* reduces(void* rank) {
    OK(reduce((int)(long)rank, COUNT, fine));
    return 0;
}
static void threads(void* (*f)(void*), int first, int last) {
    pthread_t all[RANKS];
    for (long r = first; r < last; r++)
        if (pthread_create(&all[r], 0, f, (void*)r)) fail("no thread");
    for (int r = first; r < last; r++) pthread_join(all[r], 0);
}
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void starts(void) {
    // In a group, whose end makes the communicators.
    OK(ncclGetUniqueId(&id));
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) OK(ncclCommInitRank(&comms[r], RANKS, id, r));
    OK(ncclGroupEnd());
    IS(is_taken(COUNT, fine), 1);
    destroy_all();
    OK(ncclGetUniqueId(&id));
    threads(by_thread, 0, RANKS);
    IS(is_taken(COUNT, fine), 1);
    destroy_all();
    // Only one rank of three is here.
    OK(ncclGetUniqueId(&id));
    OK(ncclCommInitRank(&comms[0], RANKS, id, 0));
    int before = lines("AllReduce");
    for (int i = 0; i < 3; i++) OK(reduce(0, COUNT, fine));
    IS(lines("AllReduce") - before, 3);
    OK(ncclCommDestroy(comms[0]));
    // A single rank has nobody to talk to.
    OK(ncclCommInitAll(comms, 1, 0));
    for (int i = 0; i < 3; i++) OK(reduce(0, COUNT, fine));
    IS(lines("AllReduce") - before, 6);
    OK(ncclCommDestroy(comms[0]));
}

// What this library has no part in.
static void others(void) {
    init_all();
    int number = 0;
    for (int r = 0; r < RANKS; r++) {
        OK(ncclCommCount(comms[r], &number));
        IS(number, RANKS);
        OK(ncclCommUserRank(comms[r], &number));
        IS(number, r);
        OK(ncclCommCuDevice(comms[r], &number));
        IS(number, r);
    }
    OK(ncclGetVersion(&number));
    IS(number, 22809);
    void* memory = 0;
    OK(ncclMemAlloc(&memory, 64));
    if (!memory) fail("no memory");
    OK(ncclMemFree(memory));
    IS(lines("MemAlloc"), 1);
    IS(strcmp(ncclGetErrorString(ncclSystemError), "an error"), 0);
    IS(strcmp(ncclGetLastError(comms[0]), "the stand-in's last error"), 0);
    destroy_all();
    IS(lines("Destroy"), RANKS);
}

static void groups(void) {
    init_all();
    IS(is_taken(COUNT, fine), 1);
    // One in another, which ends nothing.
    fresh();
    OK(ncclGroupStart());
    OK(group(COUNT, fine));
    IS(is_done(COUNT), 0);
    OK(ncclGroupEnd());
    IS(is_done(COUNT), 1);
    // Beside one that is not taken over, NCCL gets all, in order, in its own group.
    int before = lines("AllReduce");
    fresh();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(reduce(r, COUNT, fine));
        OK(ncclAllReduce(from[r], to[r], COUNT, ncclInt32, ncclProd, comms[r], (cudaStream_t)&fine[r]));
    }
    OK(ncclGroupEnd());
    IS(is_done(COUNT), 0);
    IS(lines("AllReduce") - before, 2 * RANKS);
    IS(lines("depth 0"), 0);
    // Two operations of each, which are both known.
    static int other[RANKS][COUNT * RANKS];
    for (int i = 0; i < 2; i++) {
        fresh();
        OK(ncclGroupStart());
        for (int r = 0; r < RANKS; r++)
            OK(ncclAllGather(from[r], other[r], COUNT, ncclInt32, comms[r], (cudaStream_t)&fine[r]));
        OK(ncclGroupEnd());
    }
    fresh();
    memset(other, 0, sizeof other);
    before = lines("rank");
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclAllGather(from[r], other[r], COUNT, ncclInt32, comms[r], (cudaStream_t)&fine[r]));
        OK(reduce(r, COUNT, fine));
    }
    OK(ncclGroupEnd());
    IS(lines("rank") - before, 0);
    IS(is_done(COUNT), 1);
    for (int r = 0; r < RANKS; r++)
        for (int k = 0; k < RANKS; k++) IS(memcmp(other[r] + k * COUNT, from[k], sizeof from[k]), 0);
    // Ranks that want different things.
    for (int i = 0; i < 3; i++) {
        fresh();
        OK(ncclGroupStart());
        for (int r = 0; r < RANKS; r++) OK(reduce(r, r == 1 ? COUNT - 1 : COUNT, fine));
        OK(ncclGroupEnd());
        IS(is_done(COUNT), 0);
    }
    // Nothing at all, a null buffer, a root that is none.
    before = lines("rank");
    for (int i = 0; i < 2; i++) {
        OK(group(0, fine));
        OK(ncclGroupStart());
        for (int r = 0; r < RANKS; r++)
            OK(ncclAllReduce(0, to[r], COUNT, ncclInt32, ncclSum, comms[r], (cudaStream_t)&fine[r]));
        OK(ncclGroupEnd());
        OK(ncclGroupStart());
        for (int r = 0; r < RANKS; r++)
            OK(ncclBroadcast(from[r], to[r], COUNT, ncclInt32, RANKS, comms[r], (cudaStream_t)&fine[r]));
        OK(ncclGroupEnd());
    }
    IS(lines("rank") - before, 6 * RANKS);
    // Buffers that overlap by one element less than they are long.
    static int lapped[RANKS][2 * COUNT];
    before = lines("AllReduce");
    for (int i = 0; i < 3; i++) {
        OK(ncclGroupStart());
        for (int r = 0; r < RANKS; r++)
            OK(ncclAllReduce(lapped[r], lapped[r] + 1, COUNT, ncclInt32, ncclSum, comms[r], (cudaStream_t)&fine[r]));
        OK(ncclGroupEnd());
    }
    IS(lines("AllReduce") - before, 3 * RANKS);
    // What the real library calls by a public name is its own: one line of each.
    before = lines("Broadcast");
    for (int r = 0; r < RANKS; r++) OK(ncclBcast(to[r], COUNT, ncclFloat16, -1, comms[r], (cudaStream_t)&fine[r]));
    IS(lines("Broadcast") - before, RANKS);
    IS(is_taken(COUNT, fine), 1);
    destroy_all();
}

static void captures(void) {
    init_all();
    IS(is_taken(COUNT, fine), 1);
    IS(is_taken(COUNT, captured), 0);
    // One stream of three is enough.
    fine[1] = 1;
    IS(is_taken(COUNT, fine), 0);
    fine[1] = 0;
    IS(is_taken(COUNT, fine), 1);
    destroy_all();
}

// A rank that does not come holds nobody up for long, and calls are never paired wrongly afterwards.
static void missing(void) {
    init_all();
    for (int i = 0; i < 2; i++) fresh(), threads(reduces, 0, RANKS);
    IS(is_done(COUNT), 1);
    int before = lines("AllReduce");
    fresh();
    double begun = now();
    threads(reduces, 0, RANKS - 1);
    if (now() - begun > 20) fail("two ranks waited for %.1f s", now() - begun);
    IS(lines("AllReduce") - before, RANKS - 1);
    IS(is_done(COUNT), 0);
    // The third comes to the call that the others have made, and not to their next one.
    begun = now();
    threads(reduces, RANKS - 1, RANKS);
    if (now() - begun > 1.5) fail("a late rank waited for %.1f s", now() - begun);
    IS(lines("AllReduce") - before, RANKS);
    IS(is_done(COUNT), 0);
    threads(reduces, 0, RANKS);
    IS(is_done(COUNT), 1);
    // One thread for one rank after the other, without a group: each waits for nobody, after some times.
    for (int i = 0; i < 4; i++)
        for (int r = 0; r < RANKS; r++) OK(reduce(r, COUNT, fine));
    fresh();
    begun = now();
    for (int r = 0; r < RANKS; r++) OK(reduce(r, COUNT, fine));
    IS(is_done(COUNT), 0);
    IS(is_taken(COUNT, fine), 1);
    destroy_all();
}

// Two ranks are a call ahead of the third, whose next one belongs to that.
static void levels(void) {
    init_all();
    IS(is_taken(COUNT, fine), 1);
    threads(reduces, 0, RANKS - 1);
    fresh();
    OK(group(COUNT, fine));
    IS(is_done(COUNT), 0);
    OK(reduce(RANKS - 1, COUNT, fine));
    fresh();
    OK(group(COUNT, fine));
    IS(is_done(COUNT), 1);
    destroy_all();
}

// A communicator takes 256 different calls over.
static void many(void) {
    init_all();
    static int large[RANKS][2][300];
    int before = lines("AllReduce");
    for (int i = 0; i < 3; i++)
        for (size_t count = 1; count <= 260; count++) {
            OK(ncclGroupStart());
            for (int r = 0; r < RANKS; r++)
                OK(ncclAllReduce(large[r][0], large[r][1], count, ncclInt32, ncclSum, comms[r],
                                 (cudaStream_t)&fine[r]));
            OK(ncclGroupEnd());
        }
    // All of them the first time, and then those that have no place.
    IS(lines("AllReduce") - before, RANKS * (260 + 2 * 4));
    destroy_all();
}

static void errors(void) {
    init_all();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        OK(ncclAllReduce(from[r], to[r], 7777, ncclFloat16, ncclSum, comms[r], (cudaStream_t)&fine[r]));
    IS(ncclGroupEnd(), ncclInvalidArgument);
    IS(ncclAllReduce(from[0], to[0], 7777, ncclInt32, ncclProd, comms[0], (cudaStream_t)&fine[0]), ncclInvalidArgument);
    IS(ncclGroupEnd(), ncclInvalidUsage);
    destroy_all();
}

// A fault of the fabric is one of the communicator.
static void faults(void) {
    init_all();
    ncclResult_t state = ncclSuccess;
    OK(ncclCommGetAsyncError(comms[1], &state));
    OK(state);
    OK(group(COUNT, faulty));
    IS(group(COUNT, faulty), ncclInternalError);
    if (!strstr(ncclGetLastError(comms[1]), "Tandem")) fail("the text is %s", ncclGetLastError(comms[1]));
    OK(ncclCommGetAsyncError(comms[2], &state));
    IS(state, ncclInternalError);
    IS(group(COUNT, fine), ncclInternalError);
    for (int r = 0; r < RANKS; r++) IS(reduce(r, COUNT, fine), ncclInternalError);
    for (int r = 0; r < RANKS; r++) OK(ncclCommAbort(comms[r]));
    // Others go on.
    init_all();
    IS(is_taken(COUNT, fine), 1);
    destroy_all();
}

static void ends(void) {
    init_all();
    IS(is_taken(COUNT, fine), 1);
    OK(ncclCommFinalize(comms[1]));
    IS(is_taken(COUNT, fine), 0);
    destroy_all();
    init_all();
    IS(is_taken(COUNT, fine), 1);
    OK(ncclCommDestroy(comms[RANKS - 1]));
    int before = lines("AllReduce");
    for (int i = 0; i < 2; i++) {
        OK(ncclGroupStart());
        for (int r = 0; r < RANKS - 1; r++) OK(reduce(r, COUNT, fine));
        OK(ncclGroupEnd());
    }
    IS(lines("AllReduce") - before, 2 * (RANKS - 1));
    for (int r = 0; r < RANKS - 1; r++) OK(ncclCommAbort(comms[r]));
}

// With TANDEM_NCCL=off.
static void off(void) {
    init_all();
    for (int i = 0; i < 3; i++) {
        fresh();
        OK(group(COUNT, fine));
        IS(is_done(COUNT), 0);
    }
    IS(lines("AllReduce"), 3 * RANKS);
    destroy_all();
}

int main(int count, char** arguments) {
    static const struct {
        const char* name;
        void (*part)(void);
    } parts[] = {{"starts", starts},   {"others", others}, {"groups", groups}, {"captures", captures},
                 {"missing", missing}, {"levels", levels}, {"many", many},     {"errors", errors},
                 {"faults", faults},   {"ends", ends},     {"off", off}};
    // A call that waits for ever fails, too.
    alarm(120);
    for (unsigned i = 0; count == 2 && i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(arguments[1], parts[i].name)) return parts[i].part(), puts("right"), 0;
    fail("usage: calls PART");
}
