/* Of a switch its program's registers are written down, and whose turn it is at its ports: tables and the
 * rest are told by the control plane alone. Of meters, of what entries keep and of digests nothing is: the
 * fabric program has none. */
#include "likeness.h"

#include "state.h"

static enum likeness_kind kind_of(const struct sw_cells *cells, bool is_tally)
{
    if (cells->cell_bytes == 8)
        return is_tally ? LIKE_COUNT : LIKE_TIME;
    if (cells->cell_bytes == 4)
        return is_tally ? LIKE_SHORT_COUNT : LIKE_SHORT_TIME;
    return LIKE_SAME;
}

static void liken_register(struct likeness *to, const struct sw_cells *cells, bool is_tally)
{
    uint32_t step = cells->cell_bytes < 8 ? cells->cell_bytes : 8;
    for (uint32_t i = 0; i < cells->count; i++) {
        const uint8_t *cell = sw_cell(cells, i);
        for (uint32_t at = 0; at < cells->cell_bytes; at += step) {
            uint64_t value = 0;
            memcpy(&value, cell + at, step);
            if (!value) /* as most are; which are not is told beside them */
                continue;
            like(to, LIKE_SAME, (uint64_t)i * cells->cell_bytes + at);
            like(to, kind_of(cells, is_tally), value);
        }
    }
}

static void liken_port(struct likeness *to, const struct tm_port *port)
{
    const struct tm_schedule *schedule = port->schedule;
    like(to, LIKE_SAME, port->rate);
    like(to, LIKE_SAME, port->is_down);
    if (!schedule)
        return;
    like(to, LIKE_SAME, schedule->turn);
    like(to, LIKE_COUNT, schedule->whole.until);
    for (unsigned priority = 0; priority < SW_QUEUES; priority++) {
        like(to, LIKE_SAME, (uint64_t)schedule->shares[priority].deficit);
        like(to, LIKE_COUNT, schedule->shares[priority].shaper.until);
    }
}

void liken_switch(struct likeness *to, const struct sw *sw, const uint8_t *tallies, bool lots)
{
    for (uint32_t number = 0; number < sw->program->n_registers; number++) {
        struct sw_cells cells = state_register(&sw->state, number);
        liken_register(to, &cells, tallies[number]);
    }
    if (lots)
        like(to, LIKE_SAME, sw->state.random);
    for (uint32_t number = 0; number < SW_PORTS; number++)
        if (sw->ports[number])
            liken_port(to, &sw->ports[number]->tm);
}

static void tell(void *to, enum ep_trait trait, uint64_t value)
{
    static const enum likeness_kind KINDS[] = {
        [EP_SAME] = LIKE_SAME, [EP_TIME] = LIKE_TIME, [EP_GROWS] = LIKE_COUNT};
    like(to, KINDS[trait], value);
}

bool liken_host(struct likeness *to, struct plan *plan)
{
    return ep_traits(plan_endpoint(plan), tell, to);
}

static bool keeps_to(enum likeness_kind kind, uint64_t grown, uint64_t again, ns_t period)
{
    uint32_t shortly = (uint32_t)grown;
    switch (kind) {
    case LIKE_SAME: return !grown && !again;
    case LIKE_TIME: return grown == again && (!grown || grown == period);
    case LIKE_SHORT_TIME:
        return shortly == (uint32_t)again && (!shortly || shortly == (uint32_t)period);
    case LIKE_COUNT: return grown == again;
    case LIKE_SHORT_COUNT: return shortly == (uint32_t)again;
    }
    return false;
}

uint64_t likeness_of(const uint64_t *const states[3], const uint8_t *kinds, uint64_t count, ns_t period)
{
    uint64_t i = 0;
    while (i < count && keeps_to((enum likeness_kind)kinds[i], states[1][i] - states[0][i],
                                 states[2][i] - states[1][i], period))
        i++;
    return i;
}
