#include "dcqcn.h"

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
    const char *name;
    bps_t increments_for; /* the link whose increments these are, others' in proportion; 0: any */
    struct dcqcn_profile profile;
} PROFILES[] = {
    {"paper", 40000000000,
     {.reaction = DCQCN_AT_ONCE,
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
    {"mlx5", 0,
     {.reaction = DCQCN_PERIODIC,
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
    {"hpcc-ns3", 25000000000,
     {.reaction = DCQCN_PERIODIC,
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
    {"conweave", 25000000000,
     {.reaction = DCQCN_PERIODIC,
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

bool dcqcn_profile_named(struct dcqcn_profile *profile, const char *name, bps_t line)
{
    for (size_t i = 0; i < sizeof PROFILES / sizeof *PROFILES; i++) {
        if (strcmp(PROFILES[i].name, name))
            continue;
        *profile = PROFILES[i].profile;
        profile->additive = scaled(profile->additive, PROFILES[i].increments_for, line);
        profile->hyper = scaled(profile->hyper, PROFILES[i].increments_for, line);
        return true;
    }
    return false;
}

const char *dcqcn_problem(const struct dcqcn_profile *profile)
{
    if (!profile->alpha_interval || !profile->increase_interval || !profile->minimum)
        return "DCQCN's alpha and increase intervals and its least rate are above zero";
    if (profile->reaction == DCQCN_PERIODIC && !profile->cut_interval)
        return "DCQCN that reacts periodically needs a cut interval";
    if (!(profile->g > 0 && profile->g <= 1))
        return "DCQCN's g is above 0 and at most 1";
    if (!(profile->first_alpha >= 0 && profile->first_alpha <= 1))
        return "DCQCN's alpha is between 0 and 1";
    return NULL;
}

void dcqcn_init(struct dcqcn *cc, bps_t line)
{
    *cc = (struct dcqcn){.current = line, .target = line, .line = line};
}

static double power(double base, uint64_t exponent)
{
    double result = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

static void increase(struct dcqcn *cc, const struct dcqcn_profile *profile)
{
    uint32_t by_time = cc->time_stage, by_bytes = profile->byte_counter ? cc->byte_stage : by_time;
    uint32_t most = by_time > by_bytes ? by_time : by_bytes;
    uint32_t least = by_time > by_bytes ? by_bytes : by_time;

    if (least > profile->fast_rounds)
        cc->target += profile->hyper;
    else if (most >= profile->fast_rounds)
        cc->target += profile->additive;
    if (cc->target > cc->line)
        cc->target = cc->line;
    cc->current = (cc->current + cc->target + 1) / 2;
}

static void next_stage(uint16_t *stage)
{
    if (*stage < UINT16_MAX)
        ++*stage;
}

/* The alpha clock's ticks until `now`; only the first can find a CNP noted. */
static void move_alpha(struct dcqcn *cc, const struct dcqcn_profile *profile, ns_t now)
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

static void climb(struct dcqcn *cc, const struct dcqcn_profile *profile, ns_t now)
{
    uint64_t climbs = (now - cc->increase_at) / profile->increase_interval;
    cc->increase_at += climbs * profile->increase_interval;
    for (; climbs && cc->current < cc->line; climbs--) {
        increase(cc, profile);
        next_stage(&cc->time_stage);
    }
}

static void cut(struct dcqcn *cc, const struct dcqcn_profile *profile, ns_t now)
{
    bps_t least = profile->minimum < cc->line ? profile->minimum : cc->line;
    if (profile->clamp_target || cc->time_stage || cc->byte_stage)
        cc->target = cc->current;
    cc->current = (bps_t)((double)cc->current * (1 - cc->alpha / 2));
    if (cc->current < least)
        cc->current = least;
    cc->cut_at = cc->increase_at = now;
    cc->time_stage = cc->byte_stage = 0;
    cc->sent = 0;
}

void dcqcn_advance(struct dcqcn *cc, const struct dcqcn_profile *profile, ns_t now)
{
    if (!cc->active)
        return;
    if (cc->noted_by_cut && now - cc->cut_at >= profile->cut_interval) {
        ns_t tick = cc->cut_at + profile->cut_interval;
        move_alpha(cc, profile, tick);
        climb(cc, profile, tick);
        cut(cc, profile, tick);
        cc->noted_by_cut = false;
    }
    move_alpha(cc, profile, now);
    climb(cc, profile, now);
}

static void note(struct dcqcn *cc, const struct dcqcn_profile *profile, ns_t now, bool is_first)
{
    cc->noted_by_alpha = !is_first;
    if (!cc->noted_by_cut)
        cc->cut_at = now - (now - cc->cut_at) % profile->cut_interval; /* its clock's last tick */
    cc->noted_by_cut = true;
}

static void react(struct dcqcn *cc, const struct dcqcn_profile *profile, ns_t now, bool is_first)
{
    if (is_first || now - cc->cut_at >= profile->cut_interval)
        cut(cc, profile, now);
    cc->alpha = (1 - profile->g) * cc->alpha + profile->g;
    cc->alpha_at = now;
}

void dcqcn_cnp(struct dcqcn *cc, const struct dcqcn_profile *profile, ns_t now)
{
    bool is_first = !cc->active;
    if (is_first) {
        cc->active = true;
        cc->alpha = profile->first_alpha;
        cc->cut_at = cc->alpha_at = cc->increase_at = now;
    }
    dcqcn_advance(cc, profile, now);
    (profile->reaction == DCQCN_PERIODIC ? note : react)(cc, profile, now, is_first);
}

bps_t dcqcn_sent(struct dcqcn *cc, const struct dcqcn_profile *profile, ns_t now, bytes_t bytes)
{
    dcqcn_advance(cc, profile, now);
    bps_t rate = cc->current;
    if (cc->active && profile->byte_counter) {
        cc->sent += bytes;
        while (cc->sent >= profile->byte_counter) {
            cc->sent -= profile->byte_counter;
            increase(cc, profile);
            next_stage(&cc->byte_stage);
        }
    }
    return rate;
}
