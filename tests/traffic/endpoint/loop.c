/* What the core costs: two endpoints back to back, nothing between them but an array of frames.
 *
 * Reads two plans, each after a `host` line, as star.c does; prints the nanoseconds that a data
 * packet took, from being stamped to being acknowledged, with its share of the acknowledgements.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "script.h"

enum { SLOTS = 1 << 12, HEADERS = 256 };

struct side {
    struct script script;
    uint8_t bytes[SLOTS][HEADERS]; /* frames on their way to the other side */
    uint32_t stored[SLOTS], wire[SLOTS], put, taken;
};

static bool transmit(void *ctx, const uint8_t *frame, uint32_t stored, uint32_t wire,
                     uint8_t port, uint8_t priority, ns_t at)
{
    struct side *side = ctx;
    uint32_t slot = side->put % SLOTS;
    (void)port, (void)priority, (void)at;
    if (side->put - side->taken == SLOTS || stored > HEADERS)
        return false;
    side->put++;
    memcpy(side->bytes[slot], frame, stored);
    side->stored[slot] = stored;
    side->wire[slot] = wire;
    return true;
}

static void deliver(struct side *from, struct side *to, ns_t now)
{
    for (; from->taken != from->put; from->taken++) {
        uint32_t slot = from->taken % SLOTS;
        plan_receive(to->script.plan, 0, from->bytes[slot], from->stored[slot], from->wire[slot], now);
        plan_service(to->script.plan, now);
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* whatever else the machine does */
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(void)
{
    static struct side sides[2];
    struct side *current = sides - 1;
    char *line = NULL;
    size_t room = 0;

    while (getline(&line, &room, stdin) > 0) {
        if (!strncmp(line, "host ", 5)) {
            current++;
            current->script.port = (struct plan_port){.ctx = current, .transmit = transmit};
        } else if (!script_line(&current->script, line)) {
            fprintf(stderr, "%s\n", current->script.problem);
            return 2;
        }
    }
    free(line);
    for (int i = 0; i < 2; i++)
        plan_start(sides[i].script.plan, 0);
    double began = seconds();
    for (ns_t now = 0; plan_open(sides[0].script.plan) + plan_open(sides[1].script.plan);) {
        ns_t wake = plan_service(sides[0].script.plan, now);
        deliver(&sides[0], &sides[1], now);
        deliver(&sides[1], &sides[0], now);
        now = wake == NS_NEVER ? now + 1 : wake;
    }
    double took = seconds() - began;
    const struct ep_counters *counters = ep_counters(plan_endpoint(sides[0].script.plan), 0);
    printf("%.1f\n", took * 1e9 / (double)counters->tx_data_packets);
    for (int i = 0; i < 2; i++)
        plan_free(sides[i].script.plan);
    return 0;
}
