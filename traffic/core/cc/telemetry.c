#include "telemetry.h"

/* Words that each INT instruction, most significant bit first, writes per hop. */
static const uint8_t INSTRUCTION_WORDS[16] = {1, 1, 1, 1, 2, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 1};

enum {
    INT_QUEUE = 3,
    INT_UTILISATION = 7,
    INT_END = 16,      /* behind all of INT-MD's: where our domain's begin */
    OWN_RATE = 0x8000, /* of those: the link's, in Mb/s */
};

/* How many words of a hop come before those of an instruction. */
static uint32_t words_before(uint16_t instructions, int instruction)
{
    uint32_t words = 0;
    for (int i = 0; i < instruction; i++)
        if (instructions & 0x8000u >> i)
            words += INSTRUCTION_WORDS[i];
    return words;
}

struct int_hop int_read_hop(const struct int_stack *stack, uint32_t number)
{
    const uint8_t *words = stack->words + (size_t)number * stack->hop_words * 4;
    uint32_t queue_at = words_before(stack->instructions, INT_QUEUE);
    uint32_t use_at = words_before(stack->instructions, INT_UTILISATION);
    uint32_t rate_at = words_before(stack->instructions, INT_END);
    struct int_hop hop = {INT_UNTOLD, INT_UNTOLD, INT_UNTOLD};

    if (stack->instructions & 0x8000u >> INT_QUEUE && queue_at < stack->hop_words &&
        be32_load(words + 4 * queue_at) != INT_UNTOLD)
        hop.queue = be24_load(words + 4 * queue_at + 1); /* behind the queue's number */
    if (stack->instructions & 0x8000u >> INT_UTILISATION && use_at < stack->hop_words)
        hop.utilisation = be32_load(words + 4 * use_at);
    if (stack->own_instructions & OWN_RATE && rate_at < stack->hop_words)
        hop.mbps = be32_load(words + 4 * rate_at);
    return hop;
}
