/* Parts of the core alone, a command a line: what they make of it, a line each.
 *
 *   crc HEX                    the sum by whatever is fastest here, and by tables
 *   profile NAME BPS           start DCQCN afresh, with a profile; prints its parameters
 *   parameters BPS PERIODIC CLAMP ROUNDS CNP ALPHA CUT UP BYTES G FIRST-ALPHA AI HAI LEAST
 *                              the same with parameters of one's own
 *   cnp NS / sent NS BYTES / look NS     feed it; prints rate, target and alpha
 */
#include <stdio.h>
#include <stdlib.h>

#include "dcqcn.h"
#include "icrc.h"

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

int main(void)
{
    struct dcqcn_profile profile = {0};
    struct dcqcn cc = {0};
    char *line = NULL, word[64];
    size_t room = 0;
    unsigned long long at, bytes, bps;

    while (getline(&line, &room, stdin) > 0) {
        if (!strncmp(line, "crc ", 4)) {
            print_crc(line + 4);
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
    free(line);
    return 0;
}
