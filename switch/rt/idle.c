/* Entries that nobody hits: looked for no more often than every IDLE_STEP. */
#include <stdlib.h>

#include "ctl.h"

#define IDLE_STEP 10000000 /* ns */

static void tell(struct sw *sw, uint32_t table, uint32_t position, ns_t now)
{
    size_t size = ctl_entry_size(sw, table);
    void *record = malloc(size);
    if (!record)
        return;
    ctl_put_entry(sw, table, position, record, now);
    struct event_head head = {
        .kind = EVENT_IDLE,
        .body = (uint32_t)size,
        .time = now,
        .a = table,
        .d = sw->loads,
    };
    event_put(&sw->events, &head, record);
    free(record);
}

/* When the table wants to be looked at next. */
static ns_t look(struct sw *sw, uint32_t table, ns_t now)
{
    struct sw_table *t = &sw->state.tables[table];
    ns_t wake = SW_NEVER;
    for (uint32_t i = 0; t->n_timeouts && i < t->room; i++) {
        struct sw_entry_info *info = &t->info[i];
        if (!info->is_used || !info->idle_timeout)
            continue;
        ns_t due = *(const ns_t *)entry_at(table_at(t, i), t->desc->hit_at) + info->idle_timeout;
        bool is_idle = due <= now;
        if (is_idle && !info->told_idle)
            tell(sw, table, i, now);
        info->told_idle = is_idle;
        if (is_idle)
            due = now + info->idle_timeout; /* it may be hit again */
        wake = due < wake ? due : wake;
    }
    return wake;
}

ns_t idle_service(struct sw *sw, ns_t now)
{
    if (now < sw->idle_check || !sw->program)
        return sw->idle_check;
    ns_t wake = SW_NEVER;
    for (uint32_t i = 0; i < sw->program->n_tables; i++) {
        ns_t at = look(sw, i, now);
        wake = at < wake ? at : wake;
    }
    if (wake != SW_NEVER && wake < now + IDLE_STEP)
        wake = now + IDLE_STEP;
    return sw->idle_check = wake;
}
