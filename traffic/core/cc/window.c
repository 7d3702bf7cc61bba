/* Windows: what controls have in common that bound what is in flight. */
#include "cc.h"

bps_t cc_rate_of_window(struct cc *cc, ns_t now)
{
    (void)now;
    bps_t line = cc->link.rate, least = line / 1000 ? line / 1000 : 1;
    double rate = cc->window * 8e9 / (double)cc->link.base_rtt; /* more than fits where nothing bounds it */
    return rate >= (double)line ? line : rate < (double)least ? least : (bps_t)rate;
}

void window_limit(struct cc *cc)
{
    double least = (double)cc->link.packet;
    cc->window = cc->window > cc->most ? cc->most : cc->window;
    cc->window = cc->window < least ? least : cc->window;
}

bool window_may_send(const struct cc *cc, bytes_t size, bytes_t in_flight)
{
    return !in_flight || (double)(in_flight + size) <= cc->window;
}
