#include "telemetry.h"

/* Words that each INT instruction, most significant bit first, writes per hop. */
static const uint8_t INSTRUCTION_WORDS[16] = {1, 1, 1, 1, 2, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 1};

enum {
    INT_QUEUE = 3,
    INT_END = 16, /* behind all of INT-MD's: where our domain's begin, of a word each */
    OWN_RATE = 0,
    OWN_LEFT = 1,
    OWN_SENT = 2,
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

/* One of our domain's words of a hop. */
static uint32_t own_word(const struct int_stack *stack, const uint8_t *words, int instruction)
{
    uint16_t before = (uint16_t)(stack->own_instructions & ~(0xFFFFu >> instruction));
    uint32_t at = words_before(stack->instructions, INT_END) + (uint32_t)__builtin_popcount(before);
    bool is_asked = stack->own_instructions & 0x8000u >> instruction;
    return is_asked && at < stack->hop_words ? be32_load(words + 4 * at) : INT_UNTOLD;
}

struct int_hop int_read_hop(const struct int_stack *stack, uint32_t number)
{
    const uint8_t *words = stack->words + (size_t)number * stack->hop_words * 4;
    uint32_t queue_at = words_before(stack->instructions, INT_QUEUE);
    struct int_hop hop = {
        .queue = INT_UNTOLD,
        .mbps = own_word(stack, words, OWN_RATE),
        .left = own_word(stack, words, OWN_LEFT),
        .sent = own_word(stack, words, OWN_SENT),
    };

    if (stack->instructions & 0x8000u >> INT_QUEUE && queue_at < stack->hop_words &&
        be32_load(words + 4 * queue_at) != INT_UNTOLD)
        hop.queue = be24_load(words + 4 * queue_at + 1); /* behind the queue's number */
    return hop;
}

/* Its queue behind a packet of such a size, if it told. */
static double backlog(const struct int_hop *hop, bytes_t packet)
{
    return hop->queue != INT_UNTOLD && hop->queue > packet ? (double)(hop->queue - packet) : 0;
}

static struct int_change change(const struct int_hop *then, const struct int_hop *now, bps_t line,
                                bytes_t packet)
{
    bool has_rate = now->mbps && now->mbps != INT_UNTOLD;
    struct int_change change = {
        .rate = has_rate ? (double)now->mbps / 8e3 : (double)line / 8e9,
        .queue = backlog(now, packet),
        .queue_then = backlog(then, packet),
    };
    if (then->left != INT_UNTOLD && now->left != INT_UNTOLD) {
        change.passed = (double)(uint32_t)(now->left - then->left);
        if (then->sent != INT_UNTOLD && now->sent != INT_UNTOLD)
            change.sent = (double)(uint32_t)(now->sent - then->sent);
    }
    return change;
}

uint32_t int_since(struct int_memory *memory, const struct int_stack *stack, bps_t line, bytes_t packet,
                   ns_t now, struct int_change changes[INT_HOPS])
{
    struct int_path *path = &memory->paths[stack->path % INT_PATHS];
    uint32_t hops = stack->hops < INT_HOPS ? stack->hops : INT_HOPS;
    bool is_known = path->known && path->path == stack->path && path->hops == hops;
    double waited = is_known ? (double)(now - path->heard) : 0, round = 0x1p31;

    for (uint32_t i = 0; i < hops; i++) {
        struct int_hop hop = int_read_hop(stack, i);
        if (is_known) {
            changes[i] = change(&path->hop[i], &hop, line, packet);
            double most = changes[i].passed > waited ? changes[i].passed : waited;
            is_known = most < round && most * changes[i].rate < round;
        }
        path->hop[i] = hop;
    }
    path->known = true;
    path->path = stack->path;
    path->hops = hops;
    path->heard = now;
    return is_known ? hops : 0;
}
