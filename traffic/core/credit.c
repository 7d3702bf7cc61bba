/* What is counted of a cable's credits, and how it is said; UET's between hosts are uet_answer.c's. */
#include "credit.h"

#include <string.h>

#include "wire.h"

enum { OPCODE_EXTENSION = 0xFFFE, OUI = 0x02C105 }; /* as p4src/types.p4 has them */
enum { GRANT = 1, ASK = 2 };
enum { OUI_AT = 16, KIND_AT = 19, PRIORITY_AT, BYTES_AT, END = BYTES_AT + 4 };

void credit_init(struct credit *credit, const struct credit_config *config)
{
    *credit = (struct credit){.config = *config};
    for (int i = 0; i < 8; i++)
        credit->of[i] = (struct credit_class){
            .limit = config->size, .since = NS_NEVER, .ask_at = NS_NEVER};
}


ns_t credit_wait(struct credit *credit, uint8_t priority, bool waits, ns_t now)
{
    struct credit_class *of = &credit->of[priority];
    ns_t since = of->since;
    if (waits == (since != NS_NEVER))
        return 0;
    of->since = waits ? now : NS_NEVER;
    of->ask_at = waits ? now + credit->config.ask_after : NS_NEVER;
    return waits ? 0 : now - since;
}

ns_t credit_spend(struct credit *credit, uint8_t priority, uint32_t bytes, ns_t now)
{
    uint32_t cell = credit->config.cell;
    if (!(credit->config.classes >> priority & 1))
        return 0;
    credit->of[priority].spent += (bytes + cell - 1) / cell * cell;
    return credit_wait(credit, priority, false, now); /* for the next it waits anew */
}

uint8_t credit_asker(const struct credit *credit, ns_t *when)
{
    uint8_t asker = 8;
    *when = NS_NEVER;
    for (uint8_t i = 0; i < 8; i++) {
        if (credit->of[i].ask_at >= *when)
            continue;
        asker = i;
        *when = credit->of[i].ask_at;
    }
    return asker;
}

bool credit_is_word(const uint8_t *frame, uint32_t stored)
{
    return stored >= END && be16_load(frame + 12) == ETHERTYPE_MAC_CONTROL &&
           be16_load(frame + 14) == OPCODE_EXTENSION && be24_load(frame + OUI_AT) == OUI;
}

bool credit_hear(struct credit *credit, const uint8_t *frame)
{
    uint8_t priority = frame[PRIORITY_AT];
    uint32_t limit = be32_load(frame + BYTES_AT);
    if (frame[KIND_AT] != GRANT || priority > 7 || !(credit->config.classes >> priority & 1) ||
        limit - credit->of[priority].spent > credit->config.size)
        return false;
    credit->of[priority].limit = limit;
    return true;
}

void credit_ask(struct credit *credit, uint8_t priority, uint8_t frame[CREDIT_WIRE], ns_t now)
{
    static const uint8_t addresses[] = {0x01, 0x80, 0xC2, 0, 0, 0x01, /* the next bridge */
                                        0x02, 0,    0,    0, 0, 0};   /* an adapter */
    struct credit_class *of = &credit->of[priority];
    memset(frame, 0, CREDIT_WIRE);
    memcpy(frame, addresses, sizeof addresses);
    be16_store(frame + 12, ETHERTYPE_MAC_CONTROL);
    be16_store(frame + 14, OPCODE_EXTENSION);
    be24_store(frame + OUI_AT, OUI);
    frame[KIND_AT] = ASK;
    frame[PRIORITY_AT] = priority;
    be32_store(frame + BYTES_AT, of->spent);
    of->ask_at = now + credit->config.ask_after;
}
