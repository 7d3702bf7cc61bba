#include "hpcc.h"

/* Words that each INT instruction, most significant bit first, writes per hop. */
static const uint8_t INSTRUCTION_WORDS[16] = {1, 1, 1, 1, 2, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 1};

enum { INT_QUEUE = 3, INT_UTILISATION = 7, INT_UNAVAILABLE_QUEUE = 0xFFFFFF };

static double bandwidth_delay(const struct hpcc *cc, const struct hpcc_profile *profile)
{
    return (double)cc->line / 8e9 * (double)profile->base_rtt;
}

void hpcc_init(struct hpcc *cc, const struct hpcc_profile *profile, bps_t line)
{
    *cc = (struct hpcc){.line = line};
    cc->window = cc->reference = bandwidth_delay(cc, profile);
}

/* Where an instruction's word stands within a hop's metadata; -1 if the hop does not write it. */
static int word_of(uint16_t instructions, int instruction)
{
    int at = 0;
    if (!(instructions & 0x8000u >> instruction))
        return -1;
    for (int i = 0; i < instruction; i++)
        if (instructions & 0x8000u >> i)
            at += INSTRUCTION_WORDS[i];
    return at;
}

static double busiest_link(struct hpcc *cc, const struct hpcc_profile *profile,
                           const struct int_stack *stack)
{
    int queue_at = word_of(stack->instructions, INT_QUEUE);
    int use_at = word_of(stack->instructions, INT_UTILISATION);
    double in_flight = (double)profile->fabric_bps / 8e9 * (double)profile->base_rtt;
    double most = 0;

    for (uint32_t hop = 0; hop < stack->hops && hop < HPCC_HOPS; hop++) {
        const uint8_t *words = stack->words + (size_t)hop * stack->hop_words * 4;
        double u = 0;
        if (queue_at >= 0 && (uint32_t)queue_at < stack->hop_words) {
            uint32_t queue = be24_load(words + 4 * queue_at + 1);
            if (queue == INT_UNAVAILABLE_QUEUE)
                queue = 0;
            u += (double)(queue < cc->queue[hop] ? queue : cc->queue[hop]) / in_flight;
            cc->queue[hop] = queue;
        }
        if (use_at >= 0 && (uint32_t)use_at < stack->hop_words) {
            uint32_t use = be32_load(words + 4 * use_at);
            if (use != UINT32_MAX)
                u += (double)use / profile->utilisation_full;
        }
        most = u > most ? u : most;
    }
    return most;
}

void hpcc_ack(struct hpcc *cc, const struct hpcc_profile *profile, const struct int_stack *stack,
              uint64_t acked, uint64_t next, ns_t now)
{
    double round = (double)profile->base_rtt, passed = (double)(now - cc->last_ack);
    double share = passed < round ? passed / round : 1, most = bandwidth_delay(cc, profile);
    bool round_over = acked > cc->update_after;

    cc->u = (1 - share) * cc->u + share * busiest_link(cc, profile, stack);
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
