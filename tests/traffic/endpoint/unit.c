/* Parts of the core alone, a command a line: what they make of it, a line each.
 *
 *   crc HEX                    the sum by whatever is fastest here, and by tables
 *   profile NAME BPS           start DCQCN afresh; prints the profile
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
    printf("%lu %lu %lu %lu %.17g %lu %lu %lu %u\n", p->alpha_interval, p->cut_interval,
           p->increase_interval, p->byte_counter, p->g, p->additive, p->hyper, p->minimum,
           p->fast_rounds);
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
        if (sscanf(line, "profile %63s %llu", word, &bps) == 2) {
            if (!dcqcn_profile_named(&profile, word, bps))
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
