/* Timers: packets that the program orders for a time, as a traffic generator of its own.
 *
 * The program shares a register (SW_TIMER) with the switch. A cell is a deadline, 0 none; the last
 * cell is no timer but the earliest of all deadlines, which the program brings forward when it sets
 * one earlier, so that nobody has to look through all cells to know that nothing is due. When it
 * has come, the switch looks through them. A timer rings once: its cell is cleared, and a packet of
 * type PKT_TIMER that begins with the cell's number, four bytes, goes through ingress.
 *
 *     [0] [1] ... [n - 2]   [n - 1]
 *      deadlines            at most the least of them
 *
 * The first cells are by queue, port * 8 + priority. They are due at once when the port comes up,
 * for what they sent while it was down is lost. Behind the cells are numbers that ring without one:
 * a queue that has waited for credits for long (traffic_manager.h).
 *
 * A deadline may be taken back by clearing its cell; the earliest of all is then too early, which
 * costs one look.
 */
#include "sw.h"

void timer_hasten(struct sw *sw, uint32_t port, ns_t now)
{
    const struct sw_cells *cells = &sw->shared[SW_TIMER];
    ns_t at = now > cells->from ? now - cells->from : 1;
    uint32_t first = port * SW_QUEUES;
    for (uint32_t i = first; cells->at && i < first + SW_QUEUES && i < cells->count - 1; i++)
        if (sw_cell_read(cells, i) > at) {
            sw_cell_write(cells, i, at);
            sw_cell_write(cells, cells->count - 1, at);
        }
}

void timer_ring(struct sw *sw, timer_bell ring, ns_t now)
{
    const struct sw_cells *cells = &sw->shared[SW_TIMER];
    uint32_t last = cells->count - 1;
    ns_t next = SW_NEVER;
    sw_cell_write(cells, last, 0);
    for (uint32_t i = 0; i < last; i++) {
        ns_t deadline = sw_cell_read(cells, i);
        if (!deadline)
            continue;
        deadline += cells->from;
        if (deadline <= now) {
            sw_cell_write(cells, i, 0);
            ring(sw, i, now);
            deadline = sw_cell_read(cells, i); /* set anew? */
            deadline += deadline ? cells->from : 0;
        }
        if (deadline && deadline < next)
            next = deadline;
    }
    ns_t earliest = timer_due(sw); /* of what was set anew for cells already passed */
    if (earliest < next)
        next = earliest;
    /* A program that orders a packet for a time gone by must not stop the clock. */
    sw_cell_write(cells, last, next == SW_NEVER ? 0 : (next > now ? next : now + 1) - cells->from);
}
