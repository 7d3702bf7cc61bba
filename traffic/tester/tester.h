/* A port of a traffic generator: what its flows are, and what it counts.
 *
 * A flow's frame i is its template with fields set to their i-th values, of its i-th size, and then
 * mended, in the order it was told: lengths first, then the mark by which who receives it knows
 * it, then checksums from the inside to the outside. All of that follows from i alone.
 *
 * The mark is the frame's last bytes, or its last before an ICRC and the check sequences of frames
 * within the frame:
 *
 *   | 0xC15A | run, flow | number (32) | when its first bit left, CLOCK_MONOTONIC (64) |   16 bytes
 *   | 0xC15B | run, flow | number (16) |                                                    6 bytes
 *
 * Times are real nanoseconds. Sizes are without the frame check sequence, which no veth carries.
 */
#pragma once

#include <net/if.h>
#include <sys/socket.h>

#include "../core/wire.h"

typedef unsigned __int128 wide_t;

enum {
    FLOWS_MAX = 1024, /* ten bits of a mark */
    RUNS = 64,         /* the other six */
    FRAME_MAX = 16384,
    MARK_LONG = 16,
    MARK_SHORT = 6,
    MARK_LONG_MAGIC = 0xC15A,
    MARK_SHORT_MAGIC = 0xC15B,
    FCS = 4,
    CLASSES = 8,
    CABLE_MAX = 1024, /* frames on the cable */
    BATCH = 64,
    EXIT_REFUSED = 2,
};

#define NS_PER_S 1000000000u

struct field {
    uint32_t bit, width; /* from the frame's beginning */
    wide_t start, step;
    uint64_t count;
    wide_t *values; /* NULL: start + step * (i % count) */
    bool is_random; /* start + something below count, drawn by i */
};

enum mend { MEND_LENGTH, MEND_MARK, MEND_IPV4, MEND_UDP, MEND_PLAIN, MEND_ICRC, MEND_FCS };

struct mending {
    enum mend kind;
    uint32_t at, from, ip; /* where the result goes; what it is of; the IP header before that */
    uint32_t more; /* of a length, what it does not count; of an L4 checksum, the protocol */
    bool is_bad;
    uint32_t tail; /* bytes at the frame's end that it is not of */
};

enum sizing { SIZE_FIXED, SIZE_STEPS, SIZE_RANDOM, SIZE_WEIGHTED };

struct sizes {
    enum sizing kind;
    uint32_t first, last, step;
    uint32_t count, *each;
    double *up_to; /* of all, by then */
};

struct flow {
    uint8_t *head;
    uint32_t head_bytes;
    struct field *fields;
    uint32_t n_fields;
    struct mending *mendings;
    uint32_t n_mendings;
    struct sizes sizes;
    uint32_t mark; /* bytes; 0: none */
    unsigned class;

    double interval, bps; /* real: one of them is 0 */
    uint32_t counted;     /* bytes around a frame that its rate is of as well */
    double least_gap;     /* from a frame's end to the next one's beginning */
    double delay;
    uint64_t packets; /* in all, or in a burst */
    uint64_t bursts;  /* 0: without end */
    bool has_bursts;
    double pause; /* between bursts */
    double lasts; /* NS_NEVER as a double: for good */

    bool is_on, is_held;
    unsigned run;
    uint64_t number;
    double due, began;
    uint32_t on_cable;
};

struct counts {
    uint64_t frames, bytes; /* with their check sequences */
    ns_t first, last;
    ns_t looked; /* from here on: how quickly they come */
    uint64_t frames_then, bytes_then;
    double frames_per_s, bytes_per_s; /* real */
};

struct received {
    unsigned run;
    bool is_expected;
    struct counts counts;
    uint64_t timed;
    bool is_stored;          /* latencies begin when a last bit left, not the first */
    double least, most, sum; /* of latencies, up to when a first bit came */
};

struct slot {
    ns_t ready; /* when its last bit arrives */
    uint32_t length;
    int flow;
    uint8_t bytes[FRAME_MAX];
};

struct capture;

struct port {
    char interface[IFNAMSIZ];
    int socket;
    uint64_t bps, dilation;
    ns_t delay;
    uint32_t overhead;
    struct flow *flows[FLOWS_MAX];
    unsigned n_flows; /* the highest number and one */
    struct counts sent_of[FLOWS_MAX];
    struct received received_of[FLOWS_MAX];
    struct counts sent, received;
    double free_at;
    struct slot *cable;
    unsigned first, count;
    int class_of[CLASSES]; /* of a pause frame's class, which of ours stands still; -1: none */
    bool obeys_all;        /* plain pause frames, too */
    double paused_from[CLASSES], paused_until[CLASSES];
    double free_from[CLASSES]; /* when a class was let go: it does not make up for having stood still */
    uint64_t pauses[CLASSES], pause_frames;
    double paused[CLASSES];
    uint64_t lost_on_send; /* for the interface was down */
    uint64_t late_sum, late_most;
    ns_t none_at; /* there was no frame that we had not taken */
    struct capture *capture;
    ns_t epoch; /* fabric time 0 */
};

/* flow.c: tells in words what is wrong, or NULL */
const char *flow_tell(struct port *port, char *word, char *rest);
void flow_forget(struct flow *flow);
uint32_t flow_size(const struct flow *flow, uint64_t number);
void flow_frame(const struct flow *flow, uint8_t *frame, uint32_t length, uint64_t number,
                unsigned id, ns_t leaves);
double flow_interval(const struct flow *flow, const struct port *port, uint32_t length);

/* port.c */
bool port_open(struct port *port, const char *interface);
bool port_is_up(const struct port *port);
bool port_receive(struct port *port);
ns_t port_send(struct port *port, ns_t now); /* when there will be more to do */
void port_look(struct counts *counts, ns_t now);

/* capture.c */
struct capture *capture_begin(int file, uint64_t most_bytes, uint32_t snap, bool is_rolling);
void capture_frame(struct capture *capture, const uint8_t *frame, uint32_t length, uint64_t when);
void capture_end(struct capture *capture);

ns_t real_now(void);
