#include "dcqcn.h"

/* The table of profiles; rates are for a link of 100 Gb/s. */
static const struct {
    const char *name;
    struct dcqcn_profile profile;
} PROFILES[] = {
    {"paper",
     {.alpha_interval = 50000,
      .cut_interval = 50000,
      .increase_interval = 55000,
      .byte_counter = 10000000,
      .g = 1.0 / 256,
      .additive = 20000000,
      .hyper = 200000000,
      .minimum = 1000000000,
      .fast_rounds = 5}},
    {"hpcc-paper",
     {.alpha_interval = 1000,
      .cut_interval = 4000,
      .increase_interval = 300000,
      .g = 1.0 / 256,
      .additive = 20000000,
      .hyper = 200000000,
      .minimum = 1000000000,
      .fast_rounds = 1}},
    {"conweave",
     {.alpha_interval = 1000,
      .cut_interval = 4000,
      .increase_interval = 300000,
      .g = 1.0 / 256,
      .additive = 40000000,
      .hyper = 100000000,
      .minimum = 100000000,
      .fast_rounds = 1}},
};

static bps_t scaled(bps_t at_100g, bps_t line)
{
    bps_t rate = (bps_t)((double)at_100g * (double)line / 100e9);
    return rate ? rate : 1;
}

bool dcqcn_profile_named(struct dcqcn_profile *profile, const char *name, bps_t line)
{
    for (size_t i = 0; i < sizeof PROFILES / sizeof *PROFILES; i++) {
        if (strcmp(PROFILES[i].name, name))
            continue;
        *profile = PROFILES[i].profile;
        profile->additive = scaled(profile->additive, line);
        profile->hyper = scaled(profile->hyper, line);
        profile->minimum = scaled(profile->minimum, line);
        return true;
    }
    return false;
}

void dcqcn_init(struct dcqcn *cc, bps_t line)
{
    *cc = (struct dcqcn){.alpha = 1, .current = line, .target = line, .line = line};
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

void dcqcn_advance(struct dcqcn *cc, const struct dcqcn_profile *profile, ns_t now)
{
    if (!cc->active)
        return;
    uint64_t decays = (now - cc->alpha_at) / profile->alpha_interval;
    if (decays) {
        cc->alpha *= power(1 - profile->g, decays);
        cc->alpha_at += decays * profile->alpha_interval;
    }
    uint64_t climbs = (now - cc->increase_at) / profile->increase_interval;
    cc->increase_at += climbs * profile->increase_interval;
    for (; climbs && cc->current < cc->line; climbs--) {
        increase(cc, profile);
        next_stage(&cc->time_stage);
    }
}

void dcqcn_cnp(struct dcqcn *cc, const struct dcqcn_profile *profile, ns_t now)
{
    if (!cc->active) {
        cc->active = true;
        cc->cut_at = now - profile->cut_interval;
        cc->alpha_at = cc->increase_at = now;
    }
    dcqcn_advance(cc, profile, now);
    if (now - cc->cut_at >= profile->cut_interval) {
        cc->target = cc->current;
        cc->current = (bps_t)((double)cc->current * (1 - cc->alpha / 2));
        if (cc->current < profile->minimum)
            cc->current = profile->minimum < cc->line ? profile->minimum : cc->line;
        cc->cut_at = cc->increase_at = now;
        cc->time_stage = cc->byte_stage = 0;
        cc->sent = 0;
    }
    cc->alpha = (1 - profile->g) * cc->alpha + profile->g;
    cc->alpha_at = now;
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
