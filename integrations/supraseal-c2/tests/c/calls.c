// Calls the symbols as a C program does. The test in Rust gives their addresses, so that this needs nothing to be linked with.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int code;
    char* message;
} RustError;
typedef struct {
    void* ptr;
} SRS;

struct symbols {
    RustError (*create)(SRS*, const char*, bool);
    SRS (*clone)(const SRS*);
    void (*evict)(const SRS*);
    void (*drop)(SRS*);
#ifdef CURIO
    RustError (*generate_there)(const void*, size_t, const void*, const void*, void*, const SRS*, void* mutex, int gpu);
    void* (*create_mutex)(void);
    void (*destroy_mutex)(void*);
    RustError (*start)(const void*, size_t, const void*, const void*, const SRS*, void* mutex, int gpu, void** pending);
    RustError (*finish)(void*, void*);
    void (*destroy)(void*);
#else
    RustError (*generate_here)(const void*, size_t, const void*, const void*, void*, const SRS*);
#endif
};

#ifdef CURIO
#define generate(...) generate_there(__VA_ARGS__, NULL, -1)
#else
#define generate generate_here
#endif

/// Whether the call failed with a text that has `says` in it; the text is freed.
static bool failed(RustError error, const char* says) {
    bool is = error.code != 0 && error.message && strstr(error.message, says);
    free(error.message);
    return is;
}

static bool worked(RustError error) {
    bool is = error.code == 0 && error.message == NULL;
    free(error.message);
    return is;
}

#ifdef CURIO
/// Proves in two steps, into `proofs`. 0, or the number of the step that went wrong.
static int steps(const struct symbols* s, const SRS* srs, const void* provers, size_t count, const void* r,
                 const void* s_, void* proofs) {
    void *mutex = s->create_mutex(), *pending = (void*)1;
    if (!mutex) return 1;
    if (!failed(s->start(provers, 0, r, s_, srs, mutex, -1, &pending), "0 circuits") || pending) return 2;
    if (!failed(s->start(provers, count, r, s_, NULL, mutex, -1, &pending), "null")) return 3;
    if (!failed(s->start(provers, count, r, s_, srs, mutex, -1, NULL), "null")) return 4;
    if (!worked(s->start(provers, count, r, s_, srs, mutex, 0, &pending)) || !pending) return 5;
    if (!worked(s->finish(pending, proofs))) return 6;
    if (!failed(s->finish(pending, proofs), "no such pending proof")) return 7;
    if (!worked(s->start(provers, count, r, s_, srs, NULL, -1, &pending))) return 8;
    if (!failed(s->finish(pending, NULL), "null")) return 9;
    if (!failed(s->finish(pending, proofs), "no such pending proof")) return 10;
    if (!worked(s->start(provers, count, r, s_, srs, NULL, -1, &pending))) return 11;
    s->destroy(pending);
    if (!failed(s->finish(pending, proofs), "no such pending proof")) return 12;
    s->destroy(pending);
    s->destroy(NULL);
    s->destroy_mutex(mutex);
    return 0;
}
#endif

/// Proofs of `count` circuits, made twice with handles that live in turn. 0, or the number of the step that went wrong.
int calls(const struct symbols* s, const char* path, const void* provers, size_t count, const void* r, const void* s_,
          void* proofs, void* again) {
    SRS none = {(void*)1}, srs, other;
    if (!failed(s->create(&none, "/no/such.params", true), "/no/such.params") || none.ptr) return 1;
    if (!failed(s->create(&none, NULL, true), "null")) return 2;
    if (!failed(s->create(NULL, path, true), "null")) return 3;
    if (!failed(s->generate(provers, count, r, s_, proofs, &none), "not loaded")) return 4;
    if (!worked(s->create(&srs, path, true)) || !srs.ptr) return 5;
    if (!failed(s->generate(provers, 0, r, s_, proofs, &srs), "0 circuits")) return 6;
    if (!failed(s->generate(provers, 1 << 20, r, s_, proofs, &srs), "circuits; expected 1 to")) return 7;
    if (!failed(s->generate(NULL, count, r, s_, proofs, &srs), "null")) return 8;
    if (!failed(s->generate(provers, count, r, s_, NULL, &srs), "null")) return 9;
    if (!failed(s->generate(provers, count, r, s_, proofs, NULL), "null")) return 10;
    if (!worked(s->generate(provers, count, r, s_, proofs, &srs))) return 11;
    other = s->clone(&srs);
    if (!other.ptr) return 12;
    s->drop(&srs);
    if (srs.ptr) return 13;
    s->drop(&srs);
    s->evict(&other);
    if (!worked(s->generate(provers, count, r, s_, again, &other))) return 14;
#ifdef CURIO
    memset(again, 1, count * 384);
    int step = steps(s, &other, provers, count, r, s_, again);
    if (step) return 100 + step;
#endif
    s->drop(&other);
    if (s->clone(&other).ptr || s->clone(NULL).ptr) return 15;
    s->evict(&other);
    s->evict(NULL);
    s->drop(NULL);
    return 0;
}
