/* How fast a queue pair may send, by the congestion control that the lab's own endpoints have.
 *
 * CLOSLAB_VERBS_CC is its name and, as in a scenario, its parameters: "dcqcn
 * dcqcn-profile=mlx5". Only those can be had that steer by CNPs. Controls count in the fabric's
 * time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../core/cc/cc.h"
#include "rc.h"

enum { ROUND_TRIP_NS = 12000, CNP_EVERY_NS = 50000 };
#define NS_PER_S 1000000000u

struct rates {
    unsigned name;
    struct cc_values values[CC_COUNT];
};

struct rates *rates_read(const struct ctx *ctx)
{
    char words[1024], *rest, *word;
    const char *given = getenv("CLOSLAB_VERBS_CC");
    struct rates *rates = given && *given ? calloc(1, sizeof *rates) : NULL;
    if (!rates)
        return NULL;
    snprintf(words, sizeof words, "%s", given);
    for (unsigned i = 0; i < CC_COUNT; i++)
        cc_usual(&rates->values[i], i, ctx->bps);
    word = strtok_r(words, " ", &rest);
    rates->name = word ? cc_named(word) : CC_COUNT;
    bool fine = rates->name < CC_COUNT && cc_hears(rates->name, CC_MARKS);
    while (fine && (word = strtok_r(NULL, " ", &rest))) {
        char *value = strchr(word, '=');
        fine = value;
        if (fine) {
            *value++ = 0;
            fine = cc_has(word) && cc_assign(rates->values, word, value, ctx->bps);
        }
    }
    if (fine)
        return rates;
    fprintf(stderr, "closlab0: CLOSLAB_VERBS_CC is no congestion control by CNPs: %s\n", given);
    free(rates);
    return NULL;
}

static ns_t fabric(const struct ctx *ctx, ns_t now) { return now / ctx->dilation; }

void rate_begin(const struct ctx *ctx, struct qp *qp)
{
    const struct cc_link link = {.rate = ctx->bps, .base_rtt = ROUND_TRIP_NS, .packet = qp->mtu,
                                 .hops = 4};
    free(qp->cc);
    qp->cc = NULL;
    qp->leaves_at = 0;
    if (ctx->rates)
        qp->cc = cc_new(ctx->rates->name, &ctx->rates->values[ctx->rates->name], &link);
}

void rate_sent(const struct ctx *ctx, struct qp *qp, uint32_t bytes, ns_t now)
{
    if (!qp->cc)
        return;
    bps_t rate = qp->cc->ops->rate ? qp->cc->ops->rate(qp->cc, fabric(ctx, now)) : ctx->bps;
    unsigned __int128 bit_times = (unsigned __int128)bytes * 8 * NS_PER_S * ctx->dilation;
    ns_t lasts = (ns_t)(bit_times / (rate ? rate : 1));
    if (qp->leaves_at + lasts < now)
        qp->leaves_at = now - lasts; /* that it was late once does not make it slow */
    qp->leaves_at += lasts;
    if (qp->cc->ops->sent)
        qp->cc->ops->sent(qp->cc, bytes, (qp->next - qp->una) * qp->mtu, fabric(ctx, now));
}

void rate_notified(const struct ctx *ctx, struct qp *qp, ns_t now)
{
    if (qp->cc && qp->cc->ops->notified)
        qp->cc->ops->notified(qp->cc, fabric(ctx, now));
}

ns_t rate_notice_interval(const struct ctx *ctx)
{
    const struct rates *rates = ctx->rates;
    const struct cc_ops *ops = rates ? CC_REGISTRY[rates->name].ops : NULL;
    ns_t interval = ops && ops->notice_interval ? ops->notice_interval(&rates->values[rates->name])
                                                : CNP_EVERY_NS;
    return interval * ctx->dilation;
}
