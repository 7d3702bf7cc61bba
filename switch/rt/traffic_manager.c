/* Scheduling: which packet leaves next. */
#include "traffic_manager.h"

#include <stdlib.h>

#define PS_OF_A_BYTE (8000000000000u) /* at one bit a second */

void tm_init(struct tm_port *port)
{
    memset(port, 0, sizeof *port);
    port->overhead = TM_OVERHEAD_DEFAULT;
    for (unsigned i = 0; i < SW_QUEUES; i++) {
        port->queues[i].max_packets = TM_PACKETS_DEFAULT;
        port->queues[i].max_bytes = TM_BYTES_DEFAULT;
    }
}

static void set_busy(struct tm_port *port, ps_t until)
{
    port->busy_until = until;
    port->idle_at = port->rate ? tm_whole_ns(until) : 0;
}

void tm_set_link(struct tm_port *port, bps_t rate, ns_t delay, uint32_t overhead)
{
    port->rate = rate;
    port->of_byte = rate && PS_OF_A_BYTE % rate == 0 ? PS_OF_A_BYTE / rate : 0;
    port->delay = delay;
    port->overhead = overhead;
    set_busy(port, port->busy_until);
}

/* Schedules */

static bool is_plain(const struct tm_schedule *schedule)
{
    bool plain = !schedule->weighted && !schedule->credited && !schedule->whole.rate;
    for (unsigned i = 0; i < SW_QUEUES; i++)
        plain = plain && !schedule->shares[i].shaper.rate;
    return plain;
}

void tm_unschedule(struct tm_port *port)
{
    free(port->schedule);
    port->schedule = NULL;
}

static bool need_schedule(struct tm_port *port)
{
    if (!port->schedule)
        port->schedule = calloc(1, sizeof *port->schedule);
    return port->schedule != NULL;
}

static void drop_if_plain(struct tm_port *port)
{
    if (is_plain(port->schedule))
        tm_unschedule(port);
}

bool tm_serve(struct tm_port *port, unsigned priority, struct tm_service service)
{
    if (!need_schedule(port))
        return false;
    struct tm_share *share = &port->schedule->shares[priority];
    uint8_t bit = (uint8_t)(1u << priority);
    *share = (struct tm_share){.quantum = service.quantum,
                               .shaper = {.rate = service.rate, .burst = service.burst},
                               .credit = share->credit};
    port->schedule->weighted &= (uint8_t)~bit;
    if (service.quantum)
        port->schedule->weighted |= bit;
    drop_if_plain(port);
    return true;
}

bool tm_shape(struct tm_port *port, bps_t rate, bytes_t burst, uint8_t classes)
{
    if (!need_schedule(port))
        return false;
    port->schedule->whole = (struct tm_shaper){.rate = rate, .burst = burst};
    port->schedule->classes = classes;
    drop_if_plain(port);
    return true;
}

bool tm_hold(struct tm_port *port, unsigned priority, struct tm_credit credit)
{
    if (!need_schedule(port))
        return false;
    struct tm_schedule *schedule = port->schedule;
    uint8_t bit = (uint8_t)(1u << priority);
    credit.since = credit.ask_at = SW_NEVER;
    schedule->shares[priority].credit = credit;
    schedule->credited &= (uint8_t)~bit;
    schedule->asks &= (uint8_t)~bit;
    if (credit.least)
        schedule->credited |= bit;
    drop_if_plain(port);
    return true;
}

/* Whether a queue has credits for its head; what it waits for them is noted. */
static bool has_credit(struct tm_schedule *schedule, unsigned priority, ns_t now, ns_t *wake)
{
    struct tm_credit *credit = &schedule->shares[priority].credit;
    if ((int32_t)(*credit->limit - *credit->spent) >= (int32_t)credit->least) {
        if (credit->since != SW_NEVER) {
            *credit->waited += now - credit->since;
            credit->came = now;
        }
        credit->since = credit->ask_at = SW_NEVER;
        schedule->asks &= (uint8_t)~(1u << priority);
        return true;
    }
    if (credit->since == SW_NEVER) {
        credit->since = now;
        credit->ask_at = now + credit->ask_after;
        ++*credit->waits;
    } else if (credit->ask_at <= now) {
        schedule->asks |= (uint8_t)(1u << priority);
        credit->ask_at = now + credit->ask_after;
    }
    *wake = credit->ask_at < *wake ? credit->ask_at : *wake;
    return false;
}

static ps_t lasts(bytes_t size, bps_t rate)
{
    if (SW_LIKELY(size <= UINT64_MAX / PS_OF_A_BYTE))
        return size * PS_OF_A_BYTE / rate;
    return (ps_t)((u128)size * PS_OF_A_BYTE / rate);
}

/* From when on a shaper lets a packet pass. */
static ns_t shaper_ready(const struct tm_shaper *shaper)
{
    if (!shaper->rate)
        return 0;
    ps_t depth = lasts(shaper->burst, shaper->rate);
    return shaper->until > depth ? tm_whole_ns(shaper->until - depth) : 0;
}

static void shaper_charge(struct tm_shaper *shaper, bytes_t size, ns_t start)
{
    if (!shaper->rate)
        return;
    if (tm_whole_ns(shaper->until) < start) /* else `start` was rounded up from it, or is before */
        shaper->until = start * TM_PS;
    shaper->until += lasts(size, shaper->rate);
}

static ns_t schedule_ready(const struct tm_schedule *schedule, unsigned priority)
{
    ns_t ready = shaper_ready(&schedule->shares[priority].shaper);
    if (schedule->classes >> priority & 1)
        ready = tm_later(ready, shaper_ready(&schedule->whole));
    return ready;
}

/* Which of some weighted queues that may all send does. */
static unsigned deficit_round_robin(struct tm_schedule *schedule, unsigned open)
{
    struct tm_share *shares = schedule->shares;
    if (open >> schedule->turn & 1 && shares[schedule->turn].deficit > 0)
        return schedule->turn;
    /* Rounds in which each of them would only pay off what it owes are gone through at once. */
    uint64_t rounds = UINT64_MAX;
    for (unsigned left = open; left; left &= left - 1) {
        const struct tm_share *share = &shares[__builtin_ctz(left)];
        uint64_t owed = share->deficit < 0 ? (uint64_t)-share->deficit : 0;
        rounds = owed / share->quantum < rounds ? owed / share->quantum : rounds;
    }
    for (unsigned left = rounds ? open : 0; left; left &= left - 1)
        shares[__builtin_ctz(left)].deficit += (int64_t)(rounds * shares[__builtin_ctz(left)].quantum);
    do {
        do
            schedule->turn = (schedule->turn + 1) % SW_QUEUES;
        while (!(open >> schedule->turn & 1));
        struct tm_share *share = &shares[schedule->turn];
        share->deficit = (share->deficit < 0 ? share->deficit : 0) + (int64_t)share->quantum;
    } while (shares[schedule->turn].deficit <= 0);
    return schedule->turn;
}

/* Taking */

struct pkt *tm_take_scheduled(struct tm_port *port, unsigned number, const struct sw_cells *gate,
                              ns_t now, ns_t *start, ns_t *wake)
{
    struct tm_schedule *schedule = port->schedule;
    ns_t ready[SW_QUEUES];
    unsigned open = 0, credited = port->is_down ? 0 : schedule->credited;
    for (unsigned left = port->backlog; left; left &= left - 1) {
        unsigned priority = (unsigned)__builtin_ctz(left);
        if (credited >> priority & 1 && !has_credit(schedule, priority, now, wake))
            continue;
        ready[priority] = tm_later(tm_queue_ready(port, number, priority, gate),
                                schedule_ready(schedule, priority));
        ready[priority] = tm_later(ready[priority], schedule->shares[priority].credit.came);
        if (ready[priority] <= now)
            open |= 1u << priority;
        else
            *wake = ready[priority] < *wake ? ready[priority] : *wake;
    }
    unsigned strict = open & ~(unsigned)schedule->weighted;
    if (!open)
        return NULL;
    unsigned priority =
        strict ? 31 - (unsigned)__builtin_clz(strict) : deficit_round_robin(schedule, open);
    schedule->taken = (uint8_t)priority;
    return tm_take_from(port, priority, ready[priority], now, start);
}

static void schedule_charge(struct tm_schedule *schedule, bytes_t frame, bytes_t overhead, ns_t start)
{
    struct tm_share *share = &schedule->shares[schedule->taken];
    struct tm_credit *credit = &share->credit;
    bytes_t size = frame + overhead;
    if (credit->least)
        *credit->spent += (uint32_t)((frame + credit->cell - 1) / credit->cell * credit->cell);
    if (share->quantum)
        share->deficit -= (int64_t)size;
    shaper_charge(&share->shaper, size, start);
    if (schedule->classes >> schedule->taken & 1)
        shaper_charge(&schedule->whole, size, start);
}

ns_t tm_occupied(struct tm_port *port, bytes_t size, ns_t start)
{
    if (!port->rate)
        return start + port->delay;
    ps_t begin = start * TM_PS > port->busy_until ? start * TM_PS : port->busy_until;
    /* A remainder of the link's last picoseconds is kept: `start` was rounded up from it. */
    if (port->idle_at == start)
        begin = port->busy_until;
    INVARIANT(begin >= port->busy_until); /* one frame after the other */
    size += port->overhead;
    set_busy(port, begin + (port->of_byte ? size * port->of_byte : lasts(size, port->rate)));
    return port->idle_at + port->delay;
}

ns_t tm_sent(struct tm_port *port, bytes_t size, ns_t start)
{
    if (SW_UNLIKELY(port->schedule != NULL))
        schedule_charge(port->schedule, size, port->overhead, start);
    return tm_occupied(port, size, start);
}
