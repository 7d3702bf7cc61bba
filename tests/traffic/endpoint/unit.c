/* Parts of the core alone, a command a line: what they make of it, a line each.
 *
 *   crc HEX                    the sum by whatever is fastest here, and by tables
 *   profile NAME BPS           start DCQCN afresh, with a profile; prints its parameters
 *   parameters BPS PERIODIC CLAMP ROUNDS CNP ALPHA CUT UP BYTES G FIRST-ALPHA AI HAI LEAST
 *                              the same with parameters of one's own
 *   hpcc LINE T ETA STAGES ADDITIVE     start HPCC afresh
 *   ack NS PACKET ACKED NEXT OWN HOPS [QUEUE UTILISATION MBPS]...
 *                              an ACK with what hops wrote, their rates if OWN is 1; prints window,
 *                              rate and U
 *   cnp NS / sent NS BYTES / look NS     feed it; prints rate, target and alpha
 *   window NAME BPS RTT PACKET TRIMS HOPS    start nscc, swift or rccc afresh; prints its window, as do
 *   acked NS BYTES DELAY MARKED FLYING / cut NS BYTES FLYING / lost NS BYTES FLYING
 *   flew NS BYTES FLYING / granted UNITS     feed it, too
 *   may BYTES                  whether it may send so much
 *   intake BPS ROOM XOFF XON   start a receive buffer afresh
 *   put NS STORED WIRE BYTE    a frame of such bytes comes; prints whether there was room
 *   take NS                    prints what has been taken by then, and how the buffer is
 */
#include <stdio.h>
#include <stdlib.h>

#include "congestion.h"
#include "dcqcn.h"
#include "hpcc.h"
#include "icrc.h"
#include "intake.h"

static void print_crc(const char *hex)
{
    static uint8_t bytes[1 << 16];
    size_t n = 0;
    unsigned byte;
    for (; sscanf(hex, "%2x", &byte) == 1 && n < sizeof bytes; hex += 2)
        bytes[n++] = (uint8_t)byte;
    printf("%u %u\n", crc32_more(0, bytes, n), crc32_more_portable(0, bytes, n));
}

static void print_profile(const struct dcqcn_profile *p)
{
    printf("%d %d %u %lu %lu %lu %lu %lu %.17g %.17g %lu %lu %lu\n", p->reaction, p->clamp_target,
           p->fast_rounds, p->cnp_interval, p->alpha_interval, p->cut_interval,
           p->increase_interval, p->byte_counter, p->g, p->first_alpha, p->additive, p->hyper,
           p->minimum);
}

/* Words as the hops of a packet write them, newest first: node, queue, utilisation, and ours. */
static bool read_hops(const char *text, uint32_t hops, bool own, uint8_t *stack)
{
    unsigned queue, utilisation, mbps;
    int length;
    uint8_t *at = stack;
    for (uint32_t i = 0; i < hops; i++, text += length) {
        if (sscanf(text, "%u %u %u%n", &queue, &utilisation, &mbps, &length) != 3)
            return false;
        be32_store(at, 0xABCD0000u + i);
        be32_store(at + 4, queue == UINT32_MAX ? queue : 3u << 24 | queue);
        be32_store(at + 8, utilisation);
        if (own)
            be32_store(at + 12, mbps);
        at += own ? 16 : 12;
    }
    return true;
}

static bool print_ack(const char *line, struct hpcc *cc, const struct hpcc_profile *profile)
{
    enum { NODE = 0x8000, QUEUE = 0x1000, UTILISATION = 0x0100, RATE = 0x8000 };
    uint8_t words[16 * 16];
    unsigned long long at, packet, acked, next;
    unsigned own, hops;
    int length;
    if (sscanf(line, "ack %llu %llu %llu %llu %u %u%n", &at, &packet, &acked, &next, &own, &hops,
               &length) != 6 ||
        hops > 16 || !read_hops(line + length, hops, own, words))
        return false;
    struct int_stack stack = {words, hops, own ? 4 : 3, NODE | QUEUE | UTILISATION, own ? RATE : 0};
    hpcc_ack(cc, profile, &stack, packet, acked, next, at);
    printf("%.17g %llu %.17g\n", cc->window, (unsigned long long)hpcc_rate(cc, profile), cc->u);
    return true;
}

static bool read_profile(const char *line, struct dcqcn_profile *p, unsigned long long *bps)
{
    int reaction, clamp;
    int n = sscanf(line, "parameters %llu %d %d %u %lu %lu %lu %lu %lu %lf %lf %lu %lu %lu", bps,
                   &reaction, &clamp, &p->fast_rounds, &p->cnp_interval, &p->alpha_interval,
                   &p->cut_interval, &p->increase_interval, &p->byte_counter, &p->g,
                   &p->first_alpha, &p->additive, &p->hyper, &p->minimum);
    if (n != 14)
        return false;
    p->reaction = reaction ? DCQCN_PERIODIC : DCQCN_AT_ONCE;
    p->clamp_target = clamp;
    return !dcqcn_problem(p);
}

static void print_put(struct intake *intake, ns_t now, uint32_t stored, uint32_t wire, int byte,
                      bool may_be_lost)
{
    uint8_t *frame = malloc(stored); /* of its own, so that reading past it shows */
    memset(frame, byte, stored);
    printf("%d\n", intake_put(intake, frame, stored, wire, may_be_lost, now));
    free(frame);
}

static void print_taken(struct intake *intake, ns_t now)
{
    uint32_t stored, wire;
    for (const uint8_t *frame; (frame = intake_take(intake, now, &stored, &wire));) {
        bool whole = true;
        for (uint32_t i = 0; i < stored; i++)
            whole = whole && frame[i] == frame[0];
        printf("%u:%u:%d ", stored, wire, whole ? frame[0] : -1);
    }
    printf("%u %d\n", intake->held, intake->full_enough);
}

static bool read_intake(const char *line, struct intake *intake)
{
    struct intake_config config = {0};
    unsigned long long at;
    unsigned stored, wire, byte, may_be_lost;
    if (sscanf(line, "intake %lu %u %u %u", &config.rate, &config.room, &config.xoff,
               &config.xon) == 4) {
        intake_free(intake);
        if (intake_problem(&config) || !intake_init(intake, &config))
            exit(2);
    } else if (sscanf(line, "put %llu %u %u %u %u", &at, &stored, &wire, &byte, &may_be_lost) == 5) {
        print_put(intake, at, stored, wire, (int)byte, may_be_lost);
    } else if (sscanf(line, "take %llu", &at) == 1) {
        print_taken(intake, at);
    } else {
        return false;
    }
    return true;
}

static bool start_window(const char *line, struct congestion *cc)
{
    char name[16];
    int trims;
    struct congestion_link link = {0};
    if (sscanf(line, "window %15s %lu %lu %lu %d %u", name, &link.rate, &link.base_rtt,
               &link.packet, &trims, &link.hops) != 6)
        return false;
    link.has_trimming = trims;
    *cc = (struct congestion){.link = link};
    cc->ops = !strcmp(name, "nscc") ? &NSCC : !strcmp(name, "swift") ? &SWIFT : &RCCC;
    cc->ops->init(cc);
    printf("%.17g\n", cc->window);
    return true;
}

static bool move_window(const char *line, struct congestion *cc)
{
    unsigned long long at, bytes, delay, flying;
    unsigned units;
    int marked;
    if (sscanf(line, "may %llu", &bytes) == 1) {
        printf("%d\n", cc->ops->may_send(cc, bytes, 0));
        return true;
    }
    if (sscanf(line, "granted %u", &units) == 1) {
        rccc_granted(cc, units);
        return true;
    }
    if (sscanf(line, "flew %llu %llu %llu", &at, &bytes, &flying) == 3) {
        cc->ops->sent(cc, bytes, flying, at);
        return true;
    }
    if (sscanf(line, "acked %llu %llu %llu %d %llu", &at, &bytes, &delay, &marked, &flying) == 5)
        cc->ops->acked(cc, bytes, delay, marked, flying, at);
    else if (sscanf(line, "cut %llu %llu %llu", &at, &bytes, &flying) == 3)
        cc->ops->cut(cc, bytes, false, flying, at);
    else if (sscanf(line, "lost %llu %llu %llu", &at, &bytes, &flying) == 3)
        cc->ops->lost(cc, bytes, flying, at);
    else
        return false;
    printf("%.17g\n", cc->window);
    return true;
}

int main(void)
{
    struct congestion window = {0};
    struct intake intake = {0};
    struct dcqcn_profile profile = {0};
    struct dcqcn cc = {0};
    struct hpcc_profile hpcc_profile = {.utilisation_full = 65536};
    struct hpcc hpcc;
    char *line = NULL, word[64];
    size_t room = 0;
    unsigned long long at, bytes, bps;

    while (getline(&line, &room, stdin) > 0) {
        if (read_intake(line, &intake) || start_window(line, &window))
            continue;
        if (window.ops && move_window(line, &window))
            continue;
        if (!strncmp(line, "crc ", 4)) {
            print_crc(line + 4);
            continue;
        }
        if (sscanf(line, "hpcc %llu %lu %lf %u %lu", &bps, &hpcc_profile.base_rtt,
                   &hpcc_profile.eta, &hpcc_profile.max_stage, &hpcc_profile.additive) == 5) {
            hpcc_init(&hpcc, &hpcc_profile, bps);
            continue;
        }
        if (!strncmp(line, "ack ", 4)) {
            if (!print_ack(line, &hpcc, &hpcc_profile))
                return 2;
            continue;
        }
        bool is_named = sscanf(line, "profile %63s %llu", word, &bps) == 2;
        if (is_named || !strncmp(line, "parameters ", 11)) {
            if (!(is_named ? dcqcn_profile_named(&profile, word, bps)
                           : read_profile(line, &profile, &bps)))
                return 2;
            dcqcn_init(&cc, bps);
            print_profile(&profile);
            continue;
        }
        if (sscanf(line, "cnp %llu", &at) == 1)
            dcqcn_cnp(&cc, &profile, at);
        else if (sscanf(line, "sent %llu %llu", &at, &bytes) == 2)
            dcqcn_sent(&cc, &profile, at, bytes);
        else if (sscanf(line, "look %llu", &at) == 1)
            dcqcn_advance(&cc, &profile, at);
        else
            return 2;
        printf("%llu %llu %.17g\n", (unsigned long long)cc.current, (unsigned long long)cc.target,
               cc.alpha);
    }
    intake_free(&intake);
    free(line);
    return 0;
}
