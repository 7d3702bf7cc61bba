#include "hpcc.h"

/* Words that each INT instruction, most significant bit first, writes per hop. */
static const uint8_t INSTRUCTION_WORDS[16] = {1, 1, 1, 1, 2, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 1};

enum {
    INT_QUEUE = 3,
    INT_UTILISATION = 7,
    INT_END = 16,      /* behind all of INT-MD's: where our domain's begin */
    OWN_RATE = 0x8000, /* of those: the link's, in Mb/s */
};

static double bandwidth_delay(const struct hpcc *cc, const struct hpcc_profile *profile)
{
    return (double)cc->line / 8e9 * (double)profile->base_rtt;
}

void hpcc_init(struct hpcc *cc, const struct hpcc_profile *profile, bps_t line)
{
    *cc = (struct hpcc){.line = line};
    cc->window = cc->reference = bandwidth_delay(cc, profile);
}

/* How many words of a hop come before those of an instruction. */
static uint32_t words_before(uint16_t instructions, int instruction)
{
    uint32_t words = 0;
    for (int i = 0; i < instruction; i++)
        if (instructions & 0x8000u >> i)
            words += INSTRUCTION_WORDS[i];
    return words;
}

/* The words of a hop that matter; 0xFFFFFFFF for what it was not asked, or could not tell. */
struct hop {
    uint32_t queue, utilisation, mbps;
};

static struct hop read_hop(const struct int_stack *stack, uint32_t number)
{
    const uint8_t *words = stack->words + (size_t)number * stack->hop_words * 4;
    uint32_t queue_at = words_before(stack->instructions, INT_QUEUE);
    uint32_t use_at = words_before(stack->instructions, INT_UTILISATION);
    uint32_t rate_at = words_before(stack->instructions, INT_END);
    struct hop hop = {UINT32_MAX, UINT32_MAX, UINT32_MAX};

    if (stack->instructions & 0x8000u >> INT_QUEUE && queue_at < stack->hop_words &&
        be32_load(words + 4 * queue_at) != UINT32_MAX)
        hop.queue = be24_load(words + 4 * queue_at + 1); /* behind the queue's number */
    if (stack->instructions & 0x8000u >> INT_UTILISATION && use_at < stack->hop_words)
        hop.utilisation = be32_load(words + 4 * use_at);
    if (stack->own_instructions & OWN_RATE && rate_at < stack->hop_words)
        hop.mbps = be32_load(words + 4 * rate_at);
    return hop;
}

static double busiest_link(struct hpcc *cc, const struct hpcc_profile *profile,
                           const struct int_stack *stack, bytes_t packet)
{
    double most = 0;

    for (uint32_t i = 0; i < stack->hops && i < HPCC_HOPS; i++) {
        struct hop hop = read_hop(stack, i);
        bool has_rate = hop.mbps && hop.mbps != UINT32_MAX;
        double rate = has_rate ? (double)hop.mbps * 1e6 : (double)cc->line, u = 0;
        if (hop.queue != UINT32_MAX) {
            uint32_t behind = hop.queue > packet ? hop.queue - (uint32_t)packet : 0;
            uint32_t queue = behind < cc->queue[i] ? behind : cc->queue[i];
            u += (double)queue / (rate / 8e9 * (double)profile->base_rtt);
            cc->queue[i] = behind;
        }
        if (hop.utilisation != UINT32_MAX)
            u += (double)hop.utilisation / profile->utilisation_full;
        most = u > most ? u : most;
    }
    return most;
}

void hpcc_ack(struct hpcc *cc, const struct hpcc_profile *profile, const struct int_stack *stack,
              bytes_t packet, uint64_t acked, uint64_t next, ns_t now)
{
    double round = (double)profile->base_rtt, passed = (double)(now - cc->last_ack);
    double share = passed < round ? passed / round : 1, most = bandwidth_delay(cc, profile);
    bool round_over = acked > cc->update_after;

    cc->u = (1 - share) * cc->u + share * busiest_link(cc, profile, stack, packet);
    cc->last_ack = now;
    if (cc->u >= profile->eta || cc->stage >= profile->max_stage)
        cc->window = cc->reference / (cc->u / profile->eta) + (double)profile->additive;
    else
        cc->window = cc->reference + (double)profile->additive;
    if (cc->window > most)
        cc->window = most;
    if (round_over) {
        cc->stage = cc->u >= profile->eta || cc->stage >= profile->max_stage ? 0 : cc->stage + 1;
        cc->reference = cc->window;
        cc->update_after = next;
    }
}

bps_t hpcc_rate(const struct hpcc *cc, const struct hpcc_profile *profile)
{
    bps_t rate = (bps_t)(cc->window * 8e9 / (double)profile->base_rtt);
    bps_t least = cc->line / 1000 ? cc->line / 1000 : 1;
    return rate < least ? least : rate < cc->line ? rate : cc->line;
}
