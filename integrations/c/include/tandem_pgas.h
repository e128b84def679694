// One memory over the GPUs of a machine, or over pretend PEs, from C and from whatever calls C. Link with libtandem_fabric_c.
//
// A team is a set of PEs, numbered from 0. Memory of a team is the same bytes on every PE, at the same offsets. Each PE has a queue: what it is
// told is done in order, and has not happened when the call returns; tandem_pgas_synchronize waits for all queues. Kernels reach the same
// memory by tandem/fabric.cuh, whose tandem_team the Rust interface hands out.
//
// Every function returns TANDEM_PGAS_OK or what was wrong, and then changes nothing; tandem_pgas_error has it in words. All may be called
// from any thread. A handle that was closed, or never was one, is refused.
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A team, memory, or an array. 0 is none.
typedef uint64_t tandem_pgas;

enum {
    TANDEM_PGAS_OK = 0,
    // A handle of another kind, closed, or none.
    TANDEM_PGAS_BAD_HANDLE = 1,
    // A null pointer, a PE that the team has not, a place past the end, a code that means nothing.
    TANDEM_PGAS_BAD_ARGUMENT = 2,
    TANDEM_PGAS_NO_MEMORY = 3,
    // A wait took too long: the team is unusable.
    TANDEM_PGAS_FAULT = 4,
    TANDEM_PGAS_DEVICE = 5,
    // A mistake of the library.
    TANDEM_PGAS_INTERNAL = 6
};

// Changes of a word of 64 bits. SWAP_IF makes it the operand if it is as expected. FETCH changes nothing.
enum {
    TANDEM_PGAS_SET = 0,
    TANDEM_PGAS_ADD = 1,
    TANDEM_PGAS_AND = 2,
    TANDEM_PGAS_OR = 3,
    TANDEM_PGAS_XOR = 4,
    TANDEM_PGAS_SWAP_IF = 5,
    TANDEM_PGAS_FETCH = 6
};

enum {
    TANDEM_PGAS_EQ = 0,
    TANDEM_PGAS_NE = 1,
    TANDEM_PGAS_GT = 2,
    TANDEM_PGAS_GE = 3,
    TANDEM_PGAS_LT = 4,
    TANDEM_PGAS_LE = 5
};

// What was wrong with this thread's last call that failed; valid until its next one that does.
const char* tandem_pgas_error(void);

// Opens a team: "sim:4" has four pretend PEs, "cuda" all GPUs, "cuda:0,1" these. A wait that takes longer than the timeout is a fault; 0 is
// ten seconds.
int32_t tandem_pgas_open(const char* devices, uint64_t timeout_ms, tandem_pgas* team);
// Number of PEs of a team.
int32_t tandem_pgas_size(tandem_pgas team, uint32_t* pes);
// So many bytes of zeros on every PE.
int32_t tandem_pgas_alloc(tandem_pgas team, uint64_t bytes, tandem_pgas* memory);
// Gives a handle back. A team's memory and arrays stay until their own handles are closed.
int32_t tandem_pgas_close(tandem_pgas handle);

// Waits until every queue has done what it was told.
int32_t tandem_pgas_synchronize(tandem_pgas team);
// Adds a barrier of all PEs to every queue.
int32_t tandem_pgas_barrier(tandem_pgas team);

// The host's copies to and from PE `pe`. Done on return, in no order with what queues do meanwhile.
int32_t tandem_pgas_write(tandem_pgas memory, uint32_t pe, uint64_t at, const void* from, uint64_t bytes);
int32_t tandem_pgas_read(tandem_pgas memory, uint32_t pe, uint64_t at, void* to, uint64_t bytes);

// Tells the queue of `pe` to copy from its own memory to that of `peer`, or the other way round. Ranges of one memory must not overlap on one PE.
int32_t tandem_pgas_put(uint32_t pe, uint32_t peer, tandem_pgas to, uint64_t to_at, tandem_pgas from, uint64_t from_at,
                        uint64_t bytes);
int32_t tandem_pgas_get(uint32_t pe, uint32_t peer, tandem_pgas to, uint64_t to_at, tandem_pgas from, uint64_t from_at,
                        uint64_t bytes);
// Tells the queue of `pe` to change the word of 64 bits at byte `at` of `peer`'s memory, with SET or ADD, after all that it was told before.
int32_t tandem_pgas_signal(uint32_t pe, uint32_t peer, tandem_pgas memory, uint64_t at, int32_t operation,
                           uint64_t value);
// Tells the queue of `pe` to wait until its own word compares with the value; `peer` is to change it.
int32_t tandem_pgas_wait(uint32_t pe, uint32_t peer, tandem_pgas memory, uint64_t at, int32_t compare, uint64_t value);
// Changes PE `pe`'s word of 64 bits from the host; done on return. `before`, unless null, gets what it was.
int32_t tandem_pgas_atomic(uint32_t pe, tandem_pgas memory, uint64_t at, int32_t operation, uint64_t operand,
                           uint64_t expected, uint64_t* before);

// An array of `length` elements of `element` bytes that lies on all PEs: runs of `block` elements, dealt in turn; block 0 is one run for each
// PE.
int32_t tandem_pgas_array(tandem_pgas team, uint64_t length, uint64_t element, uint64_t block, tandem_pgas* array);
// Where element `index` is: the PE, and the byte of its part (tandem_pgas_array_part).
int32_t tandem_pgas_array_owner(tandem_pgas array, uint64_t index, uint32_t* pe, uint64_t* at);
// The memory of the parts, as a handle of its own.
int32_t tandem_pgas_array_part(tandem_pgas array, tandem_pgas* memory);
// The host's copies of elements from `first` on, whichever PEs have them.
int32_t tandem_pgas_array_write(tandem_pgas array, uint64_t first, const void* from, uint64_t count);
int32_t tandem_pgas_array_read(tandem_pgas array, uint64_t first, void* to, uint64_t count);

#ifdef __cplusplus
}
#endif
