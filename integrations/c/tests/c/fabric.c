// The fabric by its functions of C, on pretend PEs: results against naive ones on random data, and what is refused.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem_pgas.h>

#define fail(...) \
    (fprintf(stderr, __VA_ARGS__), fprintf(stderr, " at line %d: %s\n", __LINE__, tandem_pgas_error()), exit(1))
#define IS(what, wanted)                                                                      \
    do {                                                                                      \
        long long found_ = (long long)(what), wanted_ = (long long)(wanted);                  \
        if (found_ != wanted_) fail("%s: found %lld, expected %lld", #what, found_, wanted_); \
    } while (0)
#define OK(what) IS(what, TANDEM_PGAS_OK)
// Refused with this code, and with words that have a text.
#define REFUSED(what, code, text)                                                           \
    do {                                                                                    \
        IS(what, code);                                                                     \
        if (!strstr(tandem_pgas_error(), text)) fail("%s: the words lack %s", #what, text); \
    } while (0)

enum { PES = 5, BYTES = 10007 };
static tandem_pgas team, memory, other, words;
static unsigned char model[PES][BYTES], models[PES][BYTES], found[BYTES];

static uint64_t state = 88172645463325252u;
static uint64_t next(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static void fill(void) {
    for (int pe = 0; pe < PES; pe++) {
        for (int i = 0; i < BYTES; i++)
            model[pe][i] = (unsigned char)(next() >> 20), models[pe][i] = (unsigned char)(next() >> 20);
        OK(tandem_pgas_write(memory, pe, 0, model[pe], BYTES));
        OK(tandem_pgas_write(other, pe, 0, models[pe], BYTES));
    }
}
static void compare(void) {
    for (int pe = 0; pe < PES; pe++) {
        OK(tandem_pgas_read(memory, pe, 0, found, BYTES));
        if (memcmp(found, model[pe], BYTES)) fail("memory of PE %d is wrong", pe);
        OK(tandem_pgas_read(other, pe, 0, found, BYTES));
        if (memcmp(found, models[pe], BYTES)) fail("other memory of PE %d is wrong", pe);
    }
}

static void copies(void) {
    fill();
    for (int round = 0; round < 300; round++) {
        uint32_t pe = next() % PES, peer = next() % PES;
        uint64_t bytes = round < 3 ? (uint64_t)round : next() % BYTES, to = next() % (BYTES - bytes + 1),
                 from = next() % (BYTES - bytes + 1);
        if (round % 2) {
            OK(tandem_pgas_put(pe, peer, memory, to, other, from, bytes));
            memcpy(model[peer] + to, models[pe] + from, bytes);
        } else {
            OK(tandem_pgas_get(pe, peer, other, to, memory, from, bytes));
            memcpy(models[pe] + to, model[peer] + from, bytes);
        }
        // Queues are ordered among themselves by what waits for them.
        OK(tandem_pgas_synchronize(team));
    }
    compare();
}

// Around a ring: each PE waits for the one before, adds its number, and passes on. No host in between.
static void signals(void) {
    for (uint64_t turn = 1; turn <= 20; turn++) {
        uint64_t value = next();
        OK(tandem_pgas_write(memory, 0, 0, &value, 8));
        for (uint32_t pe = 0; pe < PES; pe++) {
            if (pe) OK(tandem_pgas_wait(pe, pe - 1, words, 0, TANDEM_PGAS_GE, turn));
            if (pe + 1 == PES) break;
            OK(tandem_pgas_put(pe, pe + 1, memory, 0, memory, 0, 8));
            OK(tandem_pgas_signal(pe, pe + 1, words, 0, turn % 2 ? TANDEM_PGAS_SET : TANDEM_PGAS_ADD,
                                  turn % 2 ? turn : 1));
        }
        OK(tandem_pgas_barrier(team));
        OK(tandem_pgas_synchronize(team));
        uint64_t last = 0;
        OK(tandem_pgas_read(memory, PES - 1, 0, &last, 8));
        if (last != value) fail("the value of turn %d has not come", (int)turn);
    }
}

static void atomics(void) {
    uint64_t now = 0, before = 0;
    OK(tandem_pgas_atomic(2, words, 8, TANDEM_PGAS_SET, now, 0, 0));
    for (int round = 0; round < 300; round++) {
        int operation = (int)(next() % 7);
        uint64_t operand = next(), expected = next() % 2 ? now : next();
        OK(tandem_pgas_atomic(2, words, 8, operation, operand, expected, &before));
        if (before != now) fail("operation %d: the word was something else", operation);
        switch (operation) {
            case TANDEM_PGAS_SET: now = operand; break;
            case TANDEM_PGAS_ADD: now += operand; break;
            case TANDEM_PGAS_AND: now &= operand; break;
            case TANDEM_PGAS_OR: now |= operand; break;
            case TANDEM_PGAS_XOR: now ^= operand; break;
            case TANDEM_PGAS_SWAP_IF: now = now == expected ? operand : now; break;
        }
    }
    OK(tandem_pgas_read(words, 2, 8, &before, 8));
    if (before != now) fail("the word is something else");
}

static void arrays(void) {
    for (int round = 0; round < 40; round++) {
        uint64_t length = round < 2 ? (uint64_t)round : 1 + next() % 500, element = 1 + next() % 12,
                 block = round % 3 ? 1 + next() % 40 : 0;
        tandem_pgas array = 0, part = 0;
        OK(tandem_pgas_array(team, length, element, block, &array));
        OK(tandem_pgas_array_part(array, &part));
        unsigned char *naive = malloc(length * element + 1), *all = malloc(length * element + 1);
        for (uint64_t i = 0; i < length * element; i++) naive[i] = (unsigned char)(next() >> 30);
        OK(tandem_pgas_array_write(array, 0, naive, length));
        for (int i = 0; i < 20; i++) {
            uint64_t count = next() % (length + 1), first = next() % (length - count + 1);
            OK(tandem_pgas_array_read(array, first, all, count));
            if (memcmp(all, naive + first * element, count * element)) fail("elements %d and on are wrong", (int)first);
            for (uint64_t k = 0; k < count * element; k++) naive[first * element + k] = (unsigned char)(next() >> 30);
            OK(tandem_pgas_array_write(array, first, naive + first * element, count));
        }
        // Element by element, where it says that they are.
        uint64_t run = block ? block : (length + PES - 1) / PES;
        for (uint64_t i = 0; i < length; i++) {
            uint32_t pe = 0;
            uint64_t at = 0;
            OK(tandem_pgas_array_owner(array, i, &pe, &at));
            IS(pe, i / run % PES);
            OK(tandem_pgas_read(part, pe, at, found, element));
            if (memcmp(found, naive + i * element, element)) fail("element %d is not where it should be", (int)i);
        }
        REFUSED(tandem_pgas_array_read(array, length, all, 1), TANDEM_PGAS_BAD_ARGUMENT, "the array has");
        REFUSED(tandem_pgas_array_write(array, UINT64_MAX, all, 2), TANDEM_PGAS_BAD_ARGUMENT, "the array has");
        OK(tandem_pgas_close(array));
        // The part is there still.
        OK(tandem_pgas_read(part, 0, 0, found, 0));
        OK(tandem_pgas_close(part));
        free(naive), free(all);
    }
}

static void refusals(void) {
    uint64_t word = 0;
    tandem_pgas none = 77;
    REFUSED(tandem_pgas_open(0, 0, &none), TANDEM_PGAS_BAD_ARGUMENT, "devices is null");
    REFUSED(tandem_pgas_open("sim:2", 0, 0), TANDEM_PGAS_BAD_ARGUMENT, "team is null");
    const char* wrong[] = {"", "sim:", "sim:x", "gpu", "sim:-1", "\xff"};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
        IS(tandem_pgas_open(wrong[i], 0, &none), TANDEM_PGAS_BAD_ARGUMENT);
    REFUSED(tandem_pgas_open("sim:0", 0, &none), TANDEM_PGAS_BAD_ARGUMENT, "0 PEs");
    REFUSED(tandem_pgas_open("sim:33", 0, &none), TANDEM_PGAS_BAD_ARGUMENT, "33 PEs");
    IS(none, 77);
    REFUSED(tandem_pgas_alloc(0, 8, &none), TANDEM_PGAS_BAD_HANDLE, "handle 0");
    REFUSED(tandem_pgas_alloc(memory, 8, &none), TANDEM_PGAS_BAD_HANDLE, "is no team");
    REFUSED(tandem_pgas_alloc(team, UINT64_MAX, &none), TANDEM_PGAS_BAD_ARGUMENT, "do not fit");
    REFUSED(tandem_pgas_alloc(team, 8, 0), TANDEM_PGAS_BAD_ARGUMENT, "memory is null");
    REFUSED(tandem_pgas_size(team, 0), TANDEM_PGAS_BAD_ARGUMENT, "pes is null");
    REFUSED(tandem_pgas_read(team, 0, 0, &word, 8), TANDEM_PGAS_BAD_HANDLE, "is no memory");
    REFUSED(tandem_pgas_read(memory, 0, BYTES - 7, &word, 8), TANDEM_PGAS_BAD_ARGUMENT, "the memory has 10007");
    REFUSED(tandem_pgas_read(memory, 0, UINT64_MAX, &word, 8), TANDEM_PGAS_BAD_ARGUMENT, "the memory has");
    REFUSED(tandem_pgas_read(memory, PES, 0, &word, 8), TANDEM_PGAS_BAD_ARGUMENT, "PE 5 of a team of 5");
    REFUSED(tandem_pgas_read(memory, 0, 0, 0, 8), TANDEM_PGAS_BAD_ARGUMENT, "to is null");
    REFUSED(tandem_pgas_write(memory, 0, 0, 0, 8), TANDEM_PGAS_BAD_ARGUMENT, "from is null");
    REFUSED(tandem_pgas_write(memory, UINT32_MAX, 0, &word, 8), TANDEM_PGAS_BAD_ARGUMENT, "PE");
    OK(tandem_pgas_write(memory, 0, BYTES, 0, 0));
    REFUSED(tandem_pgas_put(PES, 0, memory, 0, other, 0, 8), TANDEM_PGAS_BAD_ARGUMENT, "PE 5");
    REFUSED(tandem_pgas_put(0, PES, memory, 0, other, 0, 8), TANDEM_PGAS_BAD_ARGUMENT, "PE 5");
    REFUSED(tandem_pgas_put(0, 0, memory, 0, memory, 4, 8), TANDEM_PGAS_BAD_ARGUMENT, "overlap");
    REFUSED(tandem_pgas_get(0, 1, memory, 0, other, BYTES, 1), TANDEM_PGAS_BAD_ARGUMENT, "the memory has");
    REFUSED(tandem_pgas_signal(0, 1, words, 0, TANDEM_PGAS_XOR, 1), TANDEM_PGAS_BAD_ARGUMENT, "SET or ADD");
    REFUSED(tandem_pgas_signal(0, 1, words, 4, TANDEM_PGAS_SET, 1), TANDEM_PGAS_BAD_ARGUMENT, "");
    REFUSED(tandem_pgas_wait(0, 1, words, 0, 6, 1), TANDEM_PGAS_BAD_ARGUMENT, "EQ to LE");
    REFUSED(tandem_pgas_atomic(0, words, 0, 7, 0, 0, 0), TANDEM_PGAS_BAD_ARGUMENT, "SET to FETCH");
    REFUSED(tandem_pgas_atomic(0, words, 4096, 0, 0, 0, 0), TANDEM_PGAS_BAD_ARGUMENT, "the memory has");
    REFUSED(tandem_pgas_array(team, 4, 0, 0, &none), TANDEM_PGAS_BAD_ARGUMENT, "elements of 0 bytes");
    REFUSED(tandem_pgas_array(team, UINT64_MAX / 4, 8, 0, &none), TANDEM_PGAS_BAD_ARGUMENT, "elements of 8 bytes");
    // Memory of another team.
    tandem_pgas stranger = 0, foreign = 0;
    OK(tandem_pgas_open("sim:5", 0, &stranger));
    OK(tandem_pgas_alloc(stranger, BYTES, &foreign));
    IS(tandem_pgas_put(0, 1, memory, 0, foreign, 0, 8), TANDEM_PGAS_BAD_ARGUMENT);
    OK(tandem_pgas_close(stranger));
    // Memory outlives the handle of its team, and none is closed twice.
    OK(tandem_pgas_write(foreign, 4, 0, &word, 8));
    REFUSED(tandem_pgas_close(stranger), TANDEM_PGAS_BAD_HANDLE, "is closed");
    REFUSED(tandem_pgas_synchronize(stranger), TANDEM_PGAS_BAD_HANDLE, "is closed");
    OK(tandem_pgas_close(foreign));
    REFUSED(tandem_pgas_write(foreign, 4, 0, &word, 8), TANDEM_PGAS_BAD_HANDLE, "is closed");
}

// A wait for what never comes is a fault of its team, and of no other.
static void faults(void) {
    tandem_pgas late = 0, word = 0;
    OK(tandem_pgas_open("sim:2", 300, &late));
    OK(tandem_pgas_alloc(late, 8, &word));
    OK(tandem_pgas_wait(1, 0, word, 0, TANDEM_PGAS_EQ, 1));
    REFUSED(tandem_pgas_synchronize(late), TANDEM_PGAS_FAULT, "PE 1");
    IS(tandem_pgas_barrier(late), TANDEM_PGAS_FAULT);
    OK(tandem_pgas_close(word));
    OK(tandem_pgas_close(late));
}

// Each has words of its own.
static void* wrong(void* argument) {
    if (*tandem_pgas_error()) fail("words of another thread");
    REFUSED(tandem_pgas_close(0), TANDEM_PGAS_BAD_HANDLE, "handle 0");
    return argument;
}

int main(void) {
    uint32_t pes = 0;
    OK(tandem_pgas_open("sim:5", 0, &team));
    OK(tandem_pgas_size(team, &pes));
    IS(pes, PES);
    OK(tandem_pgas_alloc(team, BYTES, &memory));
    OK(tandem_pgas_alloc(team, BYTES, &other));
    OK(tandem_pgas_alloc(team, 64, &words));
    copies();
    signals();
    atomics();
    arrays();
    refusals();
    faults();
    pthread_t thread;
    if (pthread_create(&thread, 0, wrong, 0)) fail("no thread");
    pthread_join(thread, 0);
    if (strstr(tandem_pgas_error(), "handle 0")) fail("words of another thread");
    copies();
    OK(tandem_pgas_close(memory));
    OK(tandem_pgas_close(other));
    OK(tandem_pgas_close(words));
    OK(tandem_pgas_close(team));
    puts("right");
    return 0;
}
