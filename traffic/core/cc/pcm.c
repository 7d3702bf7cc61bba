/* Programmable congestion management (PCM): an algorithm that somebody brings, in C.
 *
 * What comes from the fabric is added to the flow's signals. Where one of them passes its threshold the
 * algorithm is called with all of them, and what it then says is the window, or the rate. What it
 * sets of its signals is added to what comes next. docs/pcm.md has the interface, pcm/guard.c what
 * keeps an algorithm from harm; one that has done any stands still here, with a packet under way,
 * until the run is ended for it.
 */
#include "cc.h"

#ifndef __wasm__
#include <dlfcn.h>
#endif

#include "pcm/pcm.h"
#include "pcm/program.h"

#define MAX_BDPS 64 /* that a window may be, whatever is asked for */

struct parameters {
    const struct pcm_program *file;
    uint64_t ask_every;
};

static const struct cc_parameter PARAMETERS[] = {
    CC_FILE(file, "The algorithm: a file of C, whose YAML file lies beside it."),
    CC_NUMBER(ask_every, 1, 1, 1000000,
              "RoCEv2: an answer is asked for, and timed, with every so manieth packet."),
};

struct pcm {
    uint64_t signals[PCM_SIGNALS], initial[PCM_SIGNALS], threshold[PCM_SIGNALS], last[PCM_SIGNALS];
    bool stopped;
    double fabric[PCM_FABRIC]; /* right before what it may read */
    uint64_t snapshot[PCM_WORDS];
};

const struct pcm_program *pcm_load(const char *path)
{
#ifdef __wasm__
    (void)path;
    return NULL;
#else
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return object ? dlsym(object, PCM_PROGRAM) : NULL;
#endif
}

const struct pcm_fault *pcm_fault_of(const struct cc_values values[CC_COUNT])
{
    const struct pcm_program *program = ((const struct parameters *)&values[CC_pcm])->file;
    return program && program->fault->end ? program->fault : NULL;
}

static struct pcm *of(struct cc *cc) { return (struct pcm *)cc->state; }

static const struct pcm_program *program_of(const struct cc *cc)
{
    return ((const struct parameters *)cc->parameters)->file;
}

/* Whether it has such a control, and what it asks for by it. */
static bool asks(const struct cc *cc, pcm_control_t type, uint64_t *value)
{
    const struct pcm_program *program = program_of(cc);
    const struct pcm *pcm = (const struct pcm *)cc->state;
    for (uint32_t i = 0; program && i < program->controls; i++)
        if (program->control[i] == type) {
            *value = pcm->snapshot[PCM_HEAD + program->signals + i];
            return true;
        }
    return false;
}

static void take_window(struct cc *cc)
{
    uint64_t window;
    cc->window = asks(cc, PCM_CTRL_CWND, &window) ? (double)window : cc->most;
    if (of(cc)->stopped)
        cc->window = 0;
    window_limit(cc);
}

static void begin(struct cc *cc)
{
    const struct parameters *p = cc->parameters;
    struct pcm *pcm = of(cc);
    cc->ask_every = (uint32_t)p->ask_every;
    cc->most = MAX_BDPS * (cc_bdp(&cc->link) + (double)cc->link.packet);
    pcm->fabric[FABRIC_LINK_RATE] = (double)cc->link.rate / 8e9;
    pcm->fabric[FABRIC_HOPS] = cc->link.hops;
    pcm->fabric[FABRIC_PACKET] = (double)cc->link.packet;
    pcm->fabric[FABRIC_BYTES] = cc_bdp(&cc->link);
    pcm->fabric[FABRIC_RTT] = (double)cc->link.base_rtt * PS_PER_NS;
    if (p->file) {
        p->file->fill(pcm->snapshot, pcm->initial, pcm->threshold, pcm->fabric);
        memcpy(pcm->signals, pcm->initial, sizeof pcm->signals);
        memcpy(pcm->last, pcm->initial, sizeof pcm->last);
        take_window(cc);
    }
}

static void accumulate(const struct pcm_signal *signal, uint64_t *now, uint64_t value)
{
    switch (signal->accumulation) {
    case PCM_SIG_ACCUM_SUM: *now += value; break;
    case PCM_SIG_ACCUM_MIN: *now = value < *now ? value : *now; break;
    case PCM_SIG_ACCUM_MAX: *now = value > *now ? value : *now; break;
    case PCM_SIG_ACCUM_LAST: *now = value; break;
    }
}

static void add(struct cc *cc, pcm_signal_t type, uint64_t value)
{
    const struct pcm_program *program = program_of(cc);
    for (uint32_t i = 0; program && i < program->signals; i++)
        if (program->signal[i].type == type)
            accumulate(&program->signal[i], &of(cc)->signals[i], value);
}

static void tell_time(struct pcm *pcm, const struct pcm_program *program, ns_t now)
{
    for (uint32_t i = 0; i < program->signals; i++)
        if (program->signal[i].type == PCM_SIG_ELAPSED_TIME)
            pcm->signals[i] = now * PS_PER_NS;
}

static bool passes(enum pcm_op op, uint64_t value, uint64_t threshold)
{
    switch (op) {
    case PCM_ABOVE: return value > threshold;
    case PCM_BELOW: return value < threshold;
    case PCM_AT_LEAST: return value >= threshold;
    case PCM_AT_MOST: return value <= threshold;
    case PCM_IS: return value == threshold;
    case PCM_IS_NOT: return value != threshold;
    }
    return false;
}

/* The signals that call the algorithm, as bits. */
static uint64_t triggers(struct pcm *pcm, const struct pcm_program *program)
{
    uint64_t found = 0;
    for (uint32_t i = 0; i < program->signals; i++) {
        const struct pcm_signal *signal = &program->signal[i];
        uint64_t value = pcm->signals[i];
        if (signal->trigger == PCM_SIG_TRIGGER_UNSPEC)
            continue;
        if (signal->trigger != PCM_SIG_TRIGGER_RAW)
            value -= pcm->last[i];
        if (signal->trigger == PCM_SIG_TRIGGER_MAGNITUDE && (int64_t)value < 0)
            value = 0 - value;
        if (passes(signal->op, value, pcm->threshold[i])) {
            found |= UINT64_C(1) << i;
            pcm->last[i] = pcm->signals[i];
        }
    }
    return found;
}

/* Something came: call the algorithm if that is to, and do what it says. */
static void came(struct cc *cc, ns_t now)
{
    const struct pcm_program *program = program_of(cc);
    struct pcm *pcm = of(cc);
    if (!program || pcm->stopped)
        return;
    tell_time(pcm, program, now);
    if (!(pcm->snapshot[PCM_MASK] = triggers(pcm, program)))
        return;
    pcm->snapshot[PCM_SET_MASK] = 0;
    for (uint32_t i = 0; i < program->signals; i++) {
        pcm->snapshot[PCM_HEAD + i] = pcm->signals[i];
        if (program->signal[i].resets)
            pcm->signals[i] = pcm->initial[i];
    }
    pcm->stopped = program->call(pcm->snapshot, pcm->fabric) != PCM_WELL;
    for (uint32_t i = 0; i < program->signals; i++)
        if (pcm->snapshot[PCM_SET_MASK] >> i & 1)
            accumulate(&program->signal[i], &pcm->signals[i], pcm->snapshot[PCM_HEAD + i]);
    take_window(cc);
}

static void acked(struct cc *cc, const struct cc_ack *ack)
{
    add(cc, PCM_SIG_ACK, 1);
    add(cc, PCM_SIG_ECN, ack->marked);
    add(cc, PCM_SIG_DATA_TX, ack->bytes);
    add(cc, PCM_SIG_IN_FLIGHT, ack->in_flight);
    if (ack->round_trip != CC_UNTOLD)
        add(cc, PCM_SIG_RTT, ack->round_trip * PS_PER_NS);
    came(cc, ack->now);
}

static void cut(struct cc *cc, bytes_t size, bool last_hop, bytes_t in_flight, ns_t now)
{
    (void)last_hop;
    add(cc, PCM_SIG_NACK, 1);
    add(cc, PCM_SIG_DATA_NACKED, size);
    add(cc, PCM_SIG_IN_FLIGHT, in_flight);
    came(cc, now);
}

static void lost(struct cc *cc, bytes_t size, bytes_t in_flight, ns_t now)
{
    (void)size;
    add(cc, PCM_SIG_RTO, 1);
    add(cc, PCM_SIG_IN_FLIGHT, in_flight);
    came(cc, now);
}

static bps_t rate(struct cc *cc, ns_t now)
{
    uint64_t asked, line = cc->link.rate, least = line / 1000 ? line / 1000 : 1;
    if (of(cc)->stopped || !asks(cc, PCM_CTRL_RATE, &asked))
        return cc_rate_of_window(cc, now);
    return asked < least ? least : asked < line ? asked : line;
}

const struct cc_ops cc_pcm = {
    .bytes = sizeof(struct pcm),
    .parameters = PARAMETERS,
    .parameter_count = sizeof PARAMETERS / sizeof *PARAMETERS,
    .begin = begin,
    .acked = acked,
    .cut = cut,
    .lost = lost,
    .rate = rate,
    .may_send = window_may_send,
};
