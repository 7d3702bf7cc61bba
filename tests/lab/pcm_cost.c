/* What an answer costs a congestion control, in ns: the built-in one, and one that is brought. */
#include <stdio.h>
#include <time.h>

#include "cc.h"

enum { TIMES = 2000000 };

static double ns_of(unsigned name, const struct cc_values *values)
{
    struct cc_link link = {.rate = 400000000000, .base_rtt = 8000, .packet = 4200, .hops = 4};
    struct cc *cc = cc_new(name, values, &link);
    struct timespec from, until;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (uint64_t i = 0; i < TIMES; i++) {
        struct cc_ack ack = {.now = 20000 + i * 90, .bytes = 4200, .round_trip = 8000 + i * 37 % 9000};
        cc->ops->acked(cc, &ack);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &until);
    free(cc);
    return ((double)(until.tv_sec - from.tv_sec) * 1e9 + (double)(until.tv_nsec - from.tv_nsec)) / TIMES;
}

int main(int count, char **words)
{
    static struct cc_values values[CC_COUNT];
    const char *key[] = {"swift", "timely"};
    if (count != 3)
        return 2;
    for (unsigned i = 0; i < 2; i++) {
        unsigned own = cc_named(key[i]);
        cc_usual(&values[own], own, 400000000000);
        cc_usual(&values[CC_pcm], CC_pcm, 400000000000);
        if (!cc_assign(values, "pcm-file", words[1 + i], 400000000000))
            return 1;
        double alone = ns_of(own, &values[own]), brought = ns_of(CC_pcm, &values[CC_pcm]);
        printf("%s: %.0f ns an answer, as an algorithm for PCM %.0f ns\n", key[i], alone, brought);
    }
}
