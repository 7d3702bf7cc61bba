/* DCQCN at the sender: what a queue pair's rate does when congestion notifications come and go.
 *
 * A cut takes alpha/2 off the rate, and what it was may become the target. From then on, on every
 * tick of the increase timer and on every `byte_counter` bytes sent, the rate climbs: for
 * `fast_rounds` events halfway to the target each, then the target itself rises, by `additive`, and
 * once both counters are past the fast rounds by `hyper`. Alpha estimates congestion: it moves by
 * the share g towards 1 when CNPs come, towards 0 when none do.
 *
 * When a CNP takes effect is where the algorithm's two forms differ:
 *
 *   at once    as the paper has it: a CNP cuts, if `cut_interval` has passed since the last cut, and
 *              raises alpha; every alpha interval without one lets alpha decay.
 *   periodic   as adapters and the simulators made after them do: a CNP is noted. From the first on
 *              one clock moves alpha every alpha interval, another cuts every cut interval, each by
 *              whether a CNP came since its last tick. At one instant alpha moves first, then the
 *              rate climbs, then it is cut.
 *
 * `clamp_target` lets every cut make the present rate the target. Without it only the first cut
 * after a climb does, so that several in a row are taken back at once when congestion ends.
 *
 * No timer runs. The state is brought up to date when it is looked at, event by event, so that it
 * is exactly what timers would have made of it and a thousand idle queue pairs cost nothing.
 */
#include "cc.h"

enum { PAPER, MLX5, HPCC_NS3, CONWEAVE };
enum { AT_ONCE, PERIODIC };

struct parameters {
    uint64_t profile, reaction;
    ns_t cnp_interval; /* at the receiver: at most one CNP a queue pair in this long */
    ns_t alpha_interval, cut_interval, increase_interval;
    bytes_t byte_counter; /* 0: time alone makes the rate climb */
    double g, first_alpha;
    uint64_t fast_rounds;
    bps_t additive, hyper, minimum;
    uint64_t clamp_target;
};

static const struct cc_parameter PARAMETERS[] = {
    CC_WORD(profile, 0, "paper mlx5 hpcc-ns3 conweave",
            "Whose parameters: SIGCOMM 2015, NVIDIA's adapters, or the HPCC or ConWeave simulator."),
    CC_WORD(reaction, CC_DEFAULT, "at-once periodic",
            "When a CNP takes effect: at-once, or at the next tick of a clock, periodic."),
    CC_TIME(cnp_interval, CC_DEFAULT, 0, 1000000000,
            "The least time between two CNPs of a receiver to one queue pair; 0: one a marked packet."),
    CC_TIME(alpha_interval, CC_DEFAULT, 1, 1000000000,
            "How often alpha is updated, or, reacting at once, decays while no CNP comes."),
    CC_TIME(cut_interval, CC_DEFAULT, 0, 1000000000,
            "The least time between two cuts of the rate; 0: every notification cuts it."),
    CC_TIME(increase_interval, CC_DEFAULT, 1, 1000000000, "How often the rate climbs by time."),
    CC_SIZE(byte_counter, CC_DEFAULT, 0, 1000000000000,
            "Bytes sent after which it climbs as well; 0: by time alone."),
    CC_SHARE(g, CC_DEFAULT, "How fast alpha follows what it sees: the weight of the newest interval."),
    CC_REAL(first_alpha, CC_DEFAULT, 0, 1,
            "What alpha is when the first CNP comes; 1: the first cut halves the rate."),
    CC_NUMBER(fast_rounds, CC_DEFAULT, 0, 1000,
              "Climbs back towards the rate before the cut, before the target itself rises."),
    CC_RATE(additive, CC_DEFAULT, 0, 1000000000000, "What additive increase then adds to the target."),
    CC_RATE(hyper, CC_DEFAULT, 0, 1000000000000, "What hyper increase adds to it, later."),
    CC_RATE(minimum, CC_DEFAULT, 1, 1000000000000, "The least rate."),
    CC_FLAG(clamp_target, CC_DEFAULT,
            "Whether every cut makes the present rate the target, or only the first after a climb."),
};

struct dcqcn {
    double alpha;
    bps_t current, target;
    ns_t cut_at, alpha_at, increase_at; /* when each clock last ticked, or was set back */
    bytes_t sent;                       /* since the last event of the byte counter */
    uint16_t time_stage, byte_stage;
    bool active; /* a CNP has come; until then the rate is the line's */
    bool noted_by_alpha, noted_by_cut; /* periodic: a CNP came since the last tick */
};

/* The table of profiles, with their sources.
 *
 * paper     Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015: the
 *           values it deployed on 40 Gb/s. It leaves hyper increase to QCN and names no least rate;
 *           those are of its authors' simulator (bobzhuyb/ns3-rdma, qbb-net-device.cc, config.txt).
 * mlx5      What ConnectX-5 and later have when they come: mlxconfig's and NVIDIA's list of DCQCN
 *           parameters. Rates are absolute; the byte counter counts units of 64 bytes.
 * hpcc-ns3  Li et al., HPCC, SIGCOMM 2019: `dcqcn` of its simulator's run.py, and rdma-hw.cc.
 * conweave  Song et al., ConWeave, SIGCOMM 2023: its simulator's run.py, and rdma-hw.cc.
 */
static const struct {
    bps_t increments_for; /* the link whose increments these are, others' in proportion; 0: any */
    struct parameters values;
} PROFILES[] = {
    [PAPER] = {40000000000,
     {.profile = PAPER,
      .reaction = AT_ONCE,
      .clamp_target = true,
      .fast_rounds = 5,
      .cnp_interval = 50000,
      .alpha_interval = 55000,
      .cut_interval = 0,
      .increase_interval = 55000,
      .byte_counter = 10000000,
      .g = 1.0 / 256,
      .first_alpha = 1,
      .additive = 40000000,
      .hyper = 200000000,
      .minimum = 100000000}},
    [MLX5] = {0,
     {.profile = MLX5,
      .reaction = PERIODIC,
      .fast_rounds = 1,
      .cnp_interval = 4000,
      .alpha_interval = 1000,
      .cut_interval = 4000,
      .increase_interval = 300000,
      .byte_counter = 32767 * 64,
      .g = 1 - 1019.0 / 1024,
      .first_alpha = 1023.0 / 1024,
      .additive = 5000000,
      .hyper = 50000000,
      .minimum = 1000000}},
    [HPCC_NS3] = {25000000000,
     {.profile = HPCC_NS3,
      .reaction = PERIODIC,
      .fast_rounds = 1,
      .cnp_interval = 0,
      .alpha_interval = 1000,
      .cut_interval = 4000,
      .increase_interval = 300000,
      .g = 1.0 / 256,
      .first_alpha = 1,
      .additive = 5000000,
      .hyper = 50000000,
      .minimum = 1000000000}},
    [CONWEAVE] = {25000000000,
     {.profile = CONWEAVE,
      .reaction = PERIODIC,
      .fast_rounds = 1,
      .cnp_interval = 0,
      .alpha_interval = 1000,
      .cut_interval = 4000,
      .increase_interval = 300000,
      .g = 1.0 / 256,
      .first_alpha = 1,
      .additive = 10000000,
      .hyper = 25000000,
      .minimum = 100000000}},
};

static bps_t scaled(bps_t increment, bps_t is_for, bps_t line)
{
    bps_t rate = is_for ? (bps_t)((double)increment * (double)line / (double)is_for) : increment;
    return rate ? rate : 1;
}

static void usual(void *parameters, bps_t line)
{
    struct parameters *p = parameters;
    bps_t increments_for = PROFILES[p->profile].increments_for;
    *p = PROFILES[p->profile].values;
    p->additive = scaled(p->additive, increments_for, line);
    p->hyper = scaled(p->hyper, increments_for, line);
}

static ns_t notice_interval(const void *parameters)
{
    return ((const struct parameters *)parameters)->cnp_interval;
}

static void begin(struct cc *flow)
{
    struct dcqcn *cc = (struct dcqcn *)flow->state;
    cc->current = cc->target = flow->link.rate;
}

static double power(double base, uint64_t exponent)
{
    double result = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

static void increase(struct dcqcn *cc, const struct parameters *profile, bps_t line)
{
    uint64_t by_time = cc->time_stage, by_bytes = profile->byte_counter ? cc->byte_stage : by_time;
    uint64_t most = by_time > by_bytes ? by_time : by_bytes;
    uint64_t least = by_time > by_bytes ? by_bytes : by_time;

    if (least > profile->fast_rounds)
        cc->target += profile->hyper;
    else if (most >= profile->fast_rounds)
        cc->target += profile->additive;
    if (cc->target > line)
        cc->target = line;
    cc->current = (cc->current + cc->target + 1) / 2;
}

static void next_stage(uint16_t *stage)
{
    if (*stage < UINT16_MAX)
        ++*stage;
}

/* The alpha clock's ticks until `now`; only the first can find a CNP noted. */
static void move_alpha(struct dcqcn *cc, const struct parameters *profile, ns_t now)
{
    uint64_t ticks = (now - cc->alpha_at) / profile->alpha_interval;
    if (!ticks)
        return;
    cc->alpha_at += ticks * profile->alpha_interval;
    cc->alpha *= power(1 - profile->g, ticks);
    if (cc->noted_by_alpha)
        cc->alpha += profile->g * power(1 - profile->g, ticks - 1);
    cc->noted_by_alpha = false;
}

static void climb(struct dcqcn *cc, const struct parameters *profile, bps_t line, ns_t now)
{
    uint64_t climbs = (now - cc->increase_at) / profile->increase_interval;
    cc->increase_at += climbs * profile->increase_interval;
    for (; climbs && cc->current < line; climbs--) {
        increase(cc, profile, line);
        next_stage(&cc->time_stage);
    }
}

static void cut(struct dcqcn *cc, const struct parameters *profile, bps_t line, ns_t now)
{
    bps_t least = profile->minimum < line ? profile->minimum : line;
    if (profile->clamp_target || cc->time_stage || cc->byte_stage)
        cc->target = cc->current;
    cc->current = (bps_t)((double)cc->current * (1 - cc->alpha / 2));
    if (cc->current < least)
        cc->current = least;
    cc->cut_at = cc->increase_at = now;
    cc->time_stage = cc->byte_stage = 0;
    cc->sent = 0;
}

static void advance(struct dcqcn *cc, const struct parameters *profile, bps_t line, ns_t now)
{
    if (!cc->active)
        return;
    if (cc->noted_by_cut && now - cc->cut_at >= profile->cut_interval) {
        ns_t tick = cc->cut_at + profile->cut_interval;
        move_alpha(cc, profile, tick);
        climb(cc, profile, line, tick);
        cut(cc, profile, line, tick);
        cc->noted_by_cut = false;
    }
    move_alpha(cc, profile, now);
    climb(cc, profile, line, now);
}

static void note(struct dcqcn *cc, const struct parameters *profile, ns_t now, bool is_first)
{
    ns_t interval = profile->cut_interval;
    cc->noted_by_alpha = !is_first;
    if (!cc->noted_by_cut)
        cc->cut_at = interval ? now - (now - cc->cut_at) % interval : now; /* its clock's last tick */
    cc->noted_by_cut = true;
}

static void react(struct dcqcn *cc, const struct parameters *profile, bps_t line, ns_t now,
                  bool is_first)
{
    if (is_first || now - cc->cut_at >= profile->cut_interval)
        cut(cc, profile, line, now);
    cc->alpha = (1 - profile->g) * cc->alpha + profile->g;
    cc->alpha_at = now;
}

static void notified(struct cc *flow, ns_t now)
{
    struct dcqcn *cc = (struct dcqcn *)flow->state;
    const struct parameters *profile = flow->parameters;
    bool is_first = !cc->active;
    if (is_first) {
        cc->active = true;
        cc->alpha = profile->first_alpha;
        cc->cut_at = cc->alpha_at = cc->increase_at = now;
    }
    advance(cc, profile, flow->link.rate, now);
    if (profile->reaction == PERIODIC)
        note(cc, profile, now, is_first);
    else
        react(cc, profile, flow->link.rate, now, is_first);
}

static bps_t rate(struct cc *flow, ns_t now)
{
    struct dcqcn *cc = (struct dcqcn *)flow->state;
    advance(cc, flow->parameters, flow->link.rate, now);
    return cc->current;
}

static void sent(struct cc *flow, bytes_t size, bytes_t in_flight, ns_t now)
{
    struct dcqcn *cc = (struct dcqcn *)flow->state;
    const struct parameters *profile = flow->parameters;
    (void)in_flight, (void)now;
    if (!cc->active || !profile->byte_counter)
        return;
    cc->sent += size;
    while (cc->sent >= profile->byte_counter) {
        cc->sent -= profile->byte_counter;
        increase(cc, profile, flow->link.rate);
        next_stage(&cc->byte_stage);
    }
}

static void look(const struct cc *flow, double inside[2])
{
    const struct dcqcn *cc = (const struct dcqcn *)flow->state;
    inside[0] = cc->alpha;
    inside[1] = (double)cc->target;
}

const struct cc_ops cc_dcqcn = {
    .bytes = sizeof(struct dcqcn),
    .parameters = PARAMETERS,
    .parameter_count = sizeof PARAMETERS / sizeof *PARAMETERS,
    .usual = usual,
    .notice_interval = notice_interval,
    .begin = begin,
    .notified = notified,
    .rate = rate,
    .sent = sent,
    .look = look,
};
