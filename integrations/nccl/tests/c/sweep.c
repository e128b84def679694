// Every operation, type and way to combine, at each border of the table, in groups and with a thread for each rank, in place and not, against
// naive results; what is beyond the table must not be touched. The table stands here once more.
//
//     sweep SEED RANKS
#include <nccl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                                   \
    do {                                                                                              \
        ncclResult_t status_ = (what);                                                                \
        if (status_ != ncclSuccess) fail("%s: %s (%d)", #what, ncclGetErrorString(status_), status_); \
    } while (0)
#define fail(...) (fprintf(stderr, __VA_ARGS__), fprintf(stderr, " at line %d\n", __LINE__), exit(1))

enum { ALL_REDUCE, REDUCE, BROADCAST, BCAST, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, PAIRS, OPERATIONS };
enum { MAX = 8, GUARD = 64 };
#define KIB 1024

static int ranks;
static ncclComm_t comms[MAX];
static uint64_t state;

static uint64_t next(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state * 0x2545f4914f6cdd1dull;
}

static size_t width(int type) {
    switch (type) {
        case ncclInt8:
        case ncclUint8: return 1;
        case ncclFloat16:
        case ncclBfloat16: return 2;
        case ncclInt32:
        case ncclUint32:
        case ncclFloat32: return 4;
        default: return 8;
    }
}

// Bytes as nccl-tests count them that the table takes over: the least and the most.
static void limits(int operation, size_t* least, size_t* most) {
    *least = 1, *most = 0;
    switch (operation) {
        case REDUCE:
            if (ranks > 4) return;
            // fall through
        case ALL_REDUCE:
        case BROADCAST:
        case BCAST: *most = (ranks == 2 ? 256 : ranks <= 4 ? 128 : 64) * KIB; return;
        case ALL_GATHER:
            *least = ranks > 4 ? 256 * KIB : 1;
            // fall through
        default: *most = 512 * KIB;
    }
}

struct Case {
    int operation, type, op, root, in_place, threads;
    size_t count, part;
    unsigned char *send[MAX], *receive[MAX], *buffer[MAX];
    size_t reads[MAX], writes[MAX];
};

static ncclResult_t call(const struct Case* c, int rank) {
    const void* send = c->send[rank];
    void* receive = c->receive[rank];
    ncclComm_t comm = comms[rank];
    switch (c->operation) {
        case ALL_REDUCE: return ncclAllReduce(send, receive, c->count, c->type, c->op, comm, 0);
        case REDUCE: return ncclReduce(send, receive, c->count, c->type, c->op, c->root, comm, 0);
        case BROADCAST: return ncclBroadcast(send, receive, c->count, c->type, c->root, comm, 0);
        case BCAST: return ncclBcast(receive, c->count, c->type, c->root, comm, 0);
        case ALL_GATHER: return ncclAllGather(send, receive, c->count, c->type, comm, 0);
        case REDUCE_SCATTER: return ncclReduceScatter(send, receive, c->count, c->type, c->op, comm, 0);
        case ALL_TO_ALL: return ncclAlltoAll(send, receive, c->count, c->type, comm, 0);
    }
    for (int peer = 0; peer < ranks; peer++) {
        CHECK(ncclSend(c->send[rank] + peer * c->part, c->count, c->type, peer, comm, 0));
        CHECK(ncclRecv(c->receive[rank] + peer * c->part, c->count, c->type, peer, comm, 0));
    }
    return ncclSuccess;
}

struct Thread {
    const struct Case* c;
    int rank;
};
static void* thread(void* argument) {
    const struct Thread* t = argument;
    CHECK(call(t->c, t->rank));
    return 0;
}

static void issue(const struct Case* c) {
    if (c->threads) {
        pthread_t all[MAX];
        struct Thread arguments[MAX];
        for (int r = 0; r < ranks; r++) {
            arguments[r] = (struct Thread){c, r};
            if (pthread_create(&all[r], 0, thread, &arguments[r])) fail("no thread");
        }
        for (int r = 0; r < ranks; r++) pthread_join(all[r], 0);
        return;
    }
    CHECK(ncclGroupStart());
    for (int r = 0; r < ranks; r++) CHECK(call(c, r));
    CHECK(ncclGroupEnd());
}

#define COMBINE(TYPE, UNSIGNED)                                                                     \
    {                                                                                               \
        TYPE x, y, z;                                                                               \
        memcpy(&x, a, sizeof x), memcpy(&y, b, sizeof y);                                           \
        z = op == ncclSum ? (TYPE)((UNSIGNED)x + (UNSIGNED)y) : (op == ncclMax) == (x > y) ? x : y; \
        memcpy(a, &z, sizeof z);                                                                    \
        return;                                                                                     \
    }
static void combine(unsigned char* a, const unsigned char* b, int type, int op) {
    switch (type) {
        case ncclInt32: COMBINE(int32_t, uint32_t)
        case ncclUint32: COMBINE(uint32_t, uint32_t)
        case ncclInt64: COMBINE(int64_t, uint64_t)
        case ncclUint64: COMBINE(uint64_t, uint64_t)
        case ncclFloat32: COMBINE(float, float)
        default: COMBINE(double, double)
    }
}

static void fill(unsigned char* at, size_t bytes, int type, int is_combined) {
    size_t w = width(type);
    for (size_t i = 0; i + w <= bytes; i += w) {
        uint64_t value = next();
        float f = (float)((int64_t)value >> 40) / 1024.0f;
        double d = (double)((int64_t)value >> 12) / 65536.0;
        const void* from = is_combined && type == ncclFloat32   ? (void*)&f
                           : is_combined && type == ncclFloat64 ? (void*)&d
                                                                : (void*)&value;
        memcpy(at + i, from, w);
    }
}

// What is to be in a rank's receive buffer, from copies of what all have sent.
static void expected(const struct Case* c, unsigned char* const* sent, int rank, unsigned char* out) {
    size_t w = width(c->type), part = c->part;
    size_t from = c->operation == REDUCE_SCATTER ? rank * part : 0;
    switch (c->operation) {
        case ALL_REDUCE:
        case REDUCE:
        case REDUCE_SCATTER:
            memcpy(out, sent[0] + from, part);
            for (int r = 1; r < ranks; r++)
                for (size_t i = 0; i < part; i += w) combine(out + i, sent[r] + from + i, c->type, c->op);
            return;
        case BROADCAST:
        case BCAST: memcpy(out, sent[c->root], part); return;
        case ALL_GATHER:
            for (int r = 0; r < ranks; r++) memcpy(out + r * part, sent[r], part);
            return;
        default:
            for (int r = 0; r < ranks; r++) memcpy(out + r * part, sent[r] + rank * part, part);
    }
}

static unsigned long checks;

enum { NOT_DONE, DONE, FIRST };

// One call: with fresh data, and checked: whether it was done as it had to be. The first one may be, where a call before it had such buffers.
static void round_of(struct Case* c, int done) {
    int is_combined = c->operation == ALL_REDUCE || c->operation == REDUCE || c->operation == REDUCE_SCATTER;
    unsigned char *sent[MAX], *before[MAX];
    size_t room = c->part * ranks + GUARD;
    for (int r = 0; r < ranks; r++) {
        memset(c->buffer[r], 0xab, 2 * room);
        fill(c->send[r], c->reads[r], c->type, is_combined);
        sent[r] = malloc(room), before[r] = malloc(2 * room);
        memcpy(sent[r], c->send[r], c->reads[r]);
        memcpy(before[r], c->buffer[r], 2 * room);
    }
    issue(c);
    for (int r = 0; r < ranks; r++) {
        checks++;
        if (done != DONE && !memcmp(before[r], c->buffer[r], 2 * room)) continue;
        if (c->writes[r]) expected(c, sent, r, before[r] + (c->receive[r] - c->buffer[r]));
        if (done == NOT_DONE || memcmp(before[r], c->buffer[r], 2 * room))
            fail("operation %d type %d op %d of %zu bytes, rank %d of %d, in place %d, threads %d: %s", c->operation,
                 c->type, c->op, c->part, r, ranks, c->in_place, c->threads, done == NOT_DONE ? "touched" : "wrong");
    }
    for (int r = 0; r < ranks; r++) free(sent[r]), free(before[r]);
}

static void one(int operation, int type, int op, size_t bytes, int in_place, int threads) {
    struct Case c = {operation, type, op, 0, in_place, threads, 0, 0, {0}, {0}, {0}, {0}, {0}};
    int is_split = operation == ALL_GATHER || operation >= REDUCE_SCATTER;
    c.count = bytes / width(type) / (is_split ? ranks : 1);
    c.part = c.count * width(type);
    c.root = next() % ranks;
    if (operation == BCAST) c.in_place = 1;
    if (operation >= ALL_TO_ALL) c.in_place = 0;
    if (operation == PAIRS) c.threads = 0;
    size_t room = c.part * ranks + GUARD;
    for (int r = 0; r < ranks; r++) {
        int sends = operation == REDUCE_SCATTER || operation >= ALL_TO_ALL ? ranks : 1;
        int receives = operation == ALL_GATHER || operation >= ALL_TO_ALL ? ranks : 1;
        c.reads[r] = (operation == BROADCAST || operation == BCAST) && r != c.root ? 0 : c.part * sends;
        c.writes[r] = operation == REDUCE && r != c.root ? 0 : c.part * receives;
        c.buffer[r] = malloc(2 * room);
        // Buffers begin where elements may, not only where words do.
        c.send[r] = c.buffer[r], c.receive[r] = c.buffer[r] + room / width(type) * width(type);
        if (c.in_place && operation == ALL_GATHER) c.send[r] = c.receive[r] + r * c.part;
        else if (c.in_place && operation == REDUCE_SCATTER) c.receive[r] = c.send[r] + r * c.part;
        else if (c.in_place) c.receive[r] = c.send[r];
    }
    size_t least, most, counted = c.part * (is_split ? ranks : 1);
    limits(operation, &least, &most);
    int is_copied = operation == BROADCAST || operation == BCAST || operation == ALL_GATHER || operation >= ALL_TO_ALL;
    int is_number = type == ncclInt32 || type == ncclUint32 || type == ncclInt64 || type == ncclUint64;
    int is_float = type == ncclFloat32 || type == ncclFloat64;
    int combines = (op == ncclSum && (is_number || is_float)) || ((op == ncclMax || op == ncclMin) && is_number);
    int done = counted >= least && counted <= most && (is_copied || combines);
    // The first time a call goes to NCCL.
    round_of(&c, FIRST);
    for (int i = 0; i < 3; i++) round_of(&c, done ? DONE : NOT_DONE);
    for (int r = 0; r < ranks; r++) free(c.buffer[r]);
}

int main(int count, char** arguments) {
    if (count != 3) fail("usage: sweep SEED RANKS");
    state = strtoull(arguments[1], 0, 10) * 0x9e3779b97f4a7c15ull + 1;
    ranks = atoi(arguments[2]);
    static const int types[] = {ncclInt8,   ncclUint8,   ncclInt32,   ncclUint32,  ncclInt64,
                                ncclUint64, ncclFloat16, ncclFloat32, ncclFloat64, ncclBfloat16};
    for (int operation = 0; operation < OPERATIONS; operation++) {
        if (ranks < 9) CHECK(ncclCommInitAll(comms, ranks, 0));
        size_t least, most;
        limits(operation, &least, &most);
        if (most == 0) most = 64 * KIB;
        int is_combined = operation == ALL_REDUCE || operation == REDUCE || operation == REDUCE_SCATTER;
        for (unsigned t = 0; t < sizeof types / sizeof *types; t++) {
            size_t unit = 8 * (operation == ALL_GATHER || operation >= REDUCE_SCATTER ? ranks : 1);
            size_t border = most / unit * unit;
            one(operation, types[t], ncclSum, border, t % 2, t % 3 == 1);
            one(operation, types[t], ncclSum, border + unit, t % 2, t % 3 == 2);
            one(operation, types[t], ncclSum, least > unit ? least / unit * unit - unit : unit / 8 * width(types[t]),
                !(t % 2), t % 3 == 0);
            if (least > 1) one(operation, types[t], ncclSum, (least + unit - 1) / unit * unit, t % 2, 0);
            for (int op = ncclSum; op <= ncclAvg; op++)
                if (is_combined) one(operation, types[t], op, unit * (1 + next() % 500), next() % 2, op % 2);
            one(operation, types[t], ncclSum, unit * (1 + next() % 300), next() % 2, next() % 2);
        }
        for (int r = 0; r < ranks; r++) CHECK(ncclCommDestroy(comms[r]));
    }
    printf("%lu\n", checks);
    return 0;
}
