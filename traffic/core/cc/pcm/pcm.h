/* What an algorithm for programmable congestion management (PCM) is written against: its types and
 * numbers. Names and values are those of the public interface, so that its algorithms compile as
 * they are; docs/pcm.md has which, and what of it this lab does not have.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int64_t pcm_int;
typedef double pcm_float;
typedef uint64_t pcm_uint;

#define PCM_FORCE_INLINE inline __attribute__((always_inline, no_instrument_function))

typedef enum { PCM_SUCCESS, PCM_ERROR } pcm_err_t;

typedef enum {
    PCM_SIG_ACK,          /* answers that came */
    PCM_SIG_RTO,          /* packets given up for lost */
    PCM_SIG_NACK,         /* packets that were cut on their way */
    PCM_SIG_ECN,          /* answers to packets that were marked */
    PCM_SIG_RTT,          /* a round trip, in ps */
    PCM_SIG_DATA_TX,      /* bytes that have arrived, of which that was not known */
    PCM_SIG_DATA_NACKED,  /* bytes of packets that were cut */
    PCM_SIG_IN_FLIGHT,    /* bytes under way */
    PCM_SIG_ELAPSED_TIME, /* the fabric's time, in ps */
    PCM_SIG_ACK_EV,
    PCM_SIG_ECN_EV,
    PCM_SIG_NACK_EV,
    PCM_SIG_TX_READY_PKTS,
    PCM_SIG_TX_BACKLOG_BYTES,
    PCM_SIG_UNKNOWN,
} pcm_signal_t;

typedef enum {
    PCM_SIG_ACCUM_SUM,
    PCM_SIG_ACCUM_MIN,
    PCM_SIG_ACCUM_MAX,
    PCM_SIG_ACCUM_LAST,
    PCM_SIG_ACCUM_UNSPEC,
} pcm_signal_accum_t;

typedef enum {
    PCM_SIG_TRIGGER_RAW,
    PCM_SIG_TRIGGER_DELTA,
    PCM_SIG_TRIGGER_MAGNITUDE,
    PCM_SIG_TRIGGER_UNSPEC,
} pcm_signal_trigger_t;

typedef enum {
    PCM_CTRL_CWND, /* bytes that may be under way */
    PCM_CTRL_RATE, /* bits a second */
    PCM_CTRL_EV,
    PCM_CTRL_UNKNOWN,
} pcm_control_t;
