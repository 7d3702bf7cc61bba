/* An algorithm as it is loaded: what it has, and how it is called. Each is a shared object of its
 * own, made of its C, of tables that follow from its YAML file, and of guard.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PCM_SIGNALS = 8, PCM_CONTROLS = 2, PCM_WORDS = 256 }; /* at most, of a flow */
enum { PCM_MASK, PCM_SET_MASK, PCM_HEAD };                   /* how a snapshot begins */

/* What is known of a flow's way. Sizes are of frames. */
enum pcm_fabric {
    FABRIC_LINK_RATE, /* bytes a ns */
    FABRIC_HOPS,
    FABRIC_PACKET,
    FABRIC_BYTES, /* of a bandwidth-delay product */
    FABRIC_RTT,   /* ps, of an empty fabric */
    PCM_FABRIC,
};

enum pcm_op { PCM_ABOVE, PCM_BELOW, PCM_AT_LEAST, PCM_AT_MOST, PCM_IS, PCM_IS_NOT };

struct pcm_signal {
    uint8_t type, accumulation, trigger, op;
    bool resets; /* when the algorithm is called */
};

/* How a call ended. */
enum pcm_end {
    PCM_WELL,
    PCM_GAVE_UP,  /* it says so itself */
    PCM_ENDLESS,  /* more blocks than a call may take */
    PCM_READ,     /* where it may not */
    PCM_WROTE,
    PCM_STACK,    /* more than a call may have */
    PCM_RETURN,   /* it wrote over where it came from */
    PCM_DIVISION, /* by zero, or beyond what there is */
    PCM_ASSERTED, /* what is not so */
    PCM_UNREACHABLE,
    PCM_ENDS,
};

/* The first call of a program that did not end well; where: what it reached for. */
struct pcm_fault {
    uint64_t end, where; /* read as two words by who has it loaded (lab/machine/algorithm.py) */
};

struct pcm_program {
    uint32_t signals, controls, words; /* of a snapshot, all */
    const struct pcm_signal *signal;
    const uint8_t *control; /* what each is */
    const struct pcm_fault *fault;
    /* A flow's first values, of a way. */
    void (*fill)(uint64_t *snapshot, uint64_t *initial, uint64_t *threshold, const double *fabric);
    /* Call it; what it may read begins with the numbers of the fabric, before the snapshot. */
    enum pcm_end (*call)(uint64_t *snapshot, const double *fabric);
};

#define PCM_PROGRAM "pcm_program" /* the symbol */
