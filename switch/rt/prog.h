/* What a compiled program is to the run-time, and the run-time to it.
 *
 * The generator writes one C file per P4 program. It defines `sw_program`, a constant description
 * (below) with functions for the stages of a packet's life; everything that changes lives in a
 * `struct sw_state` that the run-time makes per switch, so one program serves any number of them.
 */
#pragma once

#include "pkt.h"

#define SW_PROGRAM_ABI 9

struct sw;
struct sw_table;
struct sw_profile;
struct sw_value_set;

struct sw_counter {
    uint64_t packets;
    bytes_t bytes;
};

struct sw_bucket { /* one rate of a meter: tokens are in millionths of what it counts */
    uint64_t rate; /* units a second */
    uint64_t burst;
    uint64_t tokens;
    ns_t filled;
};

struct sw_meter { /* two rates, three colours, colour-blind */
    bool configured;
    struct sw_bucket peak, committed;
};

enum sw_match { SW_EXACT, SW_LPM, SW_TERNARY, SW_RANGE };

struct sw_key_desc {
    enum sw_match match;
    uint16_t width; /* bits */
    uint16_t shift; /* of its lowest bit, counted over the key's words */
};

struct sw_param_desc {
    uint16_t at;   /* offset in the action's parameters, bytes */
    uint16_t bits; /* width */
};

struct sw_action_desc {
    const char *name;
    uint32_t size; /* bytes of parameters, a multiple of eight */
    uint32_t n_params;
    const struct sw_param_desc *params;
};

#define SW_NO_PROFILE (-1)
#define SW_NO_ACTION UINT32_MAX /* as an entry's action: do nothing */

struct sw_table_desc {
    const char *name;
    enum sw_match match;
    bool is_const, default_is_const;
    uint32_t n_keys;
    const struct sw_key_desc *keys;
    uint32_t key_words;
    uint32_t max_size;
    int32_t profile;
    uint32_t n_actions;
    const uint32_t *actions; /* those an entry may name */
    uint32_t default_action;
    const uint64_t *default_data;
    /* Where things are in an entry (0: not there), and how large one is; bytes. */
    uint32_t counter_at, hit_at, meter_at, order_at, data_at, stride;
};

struct sw_profile_desc {
    const char *name;
    uint32_t max_size;
    bool has_selector;
    uint32_t n_actions;
    const uint32_t *actions;
    uint32_t stride; /* of a member */
};

struct sw_array_desc { /* a register, counter or meter array, a value set, a digest */
    const char *name;
    uint32_t size;       /* cells; 0 for a direct array and a value set */
    uint32_t cell_bytes; /* registers: 1, 2, 4, 8 or a multiple of 8; digests: of a sample */
    uint32_t width;      /* bits */
    bool counts_bytes;   /* meters */
    uint32_t at, stride; /* registers: of the first cell in the state's, and to the next; bytes */
};

/* A table of this many entries does not fit in the nearer caches. Packets are then gathered, and
 * their lookups made one behind the other first: the processor waits for many misses at once. */
#define SW_WARM_MIN 4096
#define SW_GATHER 32 /* packets looked up together */

/* The state a program reads and writes, one per switch that runs it. */
struct sw_state {
    const struct sw_program *program;
    struct sw_table *tables;
    struct sw_profile *profiles;
    struct sw_counter **counters;
    struct sw_meter **meters;
    void *registers; /* of all arrays; what belongs together side by side */
    struct sw_value_set *value_sets;
    uint64_t random; /* the generator's state */
    uint16_t drop_port;
    uint32_t n_large; /* tables of SW_WARM_MIN entries and more */
    uint64_t *resting; /* bit t: table t is empty, and its default action the program's own */
    void *cells; /* of all counters */
};

/* Whether a table is as the program knows it, so that there is no need to look at it. */
SW_INLINE bool sw_rests(const struct sw_state *state, uint32_t table)
{
    return state->resting[table / 64] >> table % 64 & 1;
}

/* One packet's run through a stage. */
struct sw_run {
    struct sw *sw;
    struct sw_state *state;
    struct pkt *pkt;
    ns_t now;
    uint32_t deq_depth; /* packets left in its queue, in egress */
    uint32_t ran;       /* the action the last table ran, where control depends on it */
    bool hit;           /* ... or whether it hit */
    uint32_t turns;     /* of the program's loops, in this stage */
};

struct sw_program {
    uint32_t abi;
    const char *name;
    uint32_t phv_size;
    uint32_t headroom; /* bytes that deparsing may need beyond those parsed */
    size_t registers_size;
    uint32_t n_tables, n_actions, n_profiles, n_counters, n_meters, n_registers, n_digests,
        n_value_sets;
    const struct sw_table_desc *tables;
    const struct sw_action_desc *actions;
    const struct sw_profile_desc *profiles;
    const struct sw_array_desc *counters, *meters, *registers, *digests, *value_sets;

    void (*receive)(struct sw_run *run); /* the frame into headers; checksums verified */
    /* Bring what packets may find in large tables into the cache; at most SW_GATHER of them. */
    void (*warm)(const struct sw_state *state, struct pkt *const *packets, unsigned n);
    void (*ingress)(struct sw_run *run); /* the ingress control; fills the requests */
    void (*egress)(struct sw_run *run);  /* the egress control; fills the requests */
    void (*deparse)(struct sw_run *run); /* checksums updated; headers in front of the payload */

    uint8_t (*priority)(const void *phv);       /* the queue it wants */
    void (*clear)(void *phv);                   /* as it is before a packet is looked at */
    void (*reset_metadata)(void *phv);          /* user metadata and the standard one */
    void (*copy_list)(uint32_t list, void *to, const void *from); /* a field list's fields */
    void (*digest)(uint32_t digest, const void *phv, uint8_t *sample);
    /* What of it egress may look at, so many bytes at most; and back. */
    uint32_t (*pack)(const void *phv, uint8_t *to);
    void (*unpack)(void *phv, const uint8_t *from);
    uint32_t packed_most;
};

/* The one symbol a program's shared object offers. */
extern const struct sw_program sw_program;

/* Tracing: the compiler removes it all unless the program was built to tell stories. */
#ifdef SW_TRACING
void sw_trace(struct sw_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define SW_TRACE(run, ...) sw_trace(run, __VA_ARGS__)
#define SW_TRACES 1
#else
#define SW_TRACE(run, ...) ((void)(run))
#define SW_TRACES 0
#endif

/* log_msg: text that the program wants on the console, traced or not. */
void sw_log(struct sw_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* assert and assume: count and report a failure; the packet is dropped, the switch goes on. */
void sw_assert_failed(struct sw_run *run, const char *what);

#define SW_LOOP_MAX 65536 /* turns of a program's loops that a packet may take in a stage */
/* A packet has taken more: it is dropped at the end of the stage, which it leaves as by exit. */
void sw_endless(struct sw_run *run) __attribute__((cold, noinline));
