#include "health.h"

enum { MAX_RELAPSES = 6, MAX_BACKOFF = 6 };
#define FORGET_ROUND_TRIPS 64 /* good for so long, and a way's last relapse is forgotten */

void health_init(struct health *health, struct way *ways, uint16_t count)
{
    *health = (struct health){.ways = ways, .count = count, .good = count, .probe_at = NS_NEVER};
}

bool health_takes(struct health *health, uint16_t way)
{
    struct way *its = &health->ways[way];
    if (its->state == WAY_GOOD)
        return true;
    if (!health->good)
        return its->state != WAY_DENIED || health_denies_all(health);
    if (its->state == WAY_SKIP) {
        its->state = WAY_GOOD;
        health->skipped++;
    }
    return false;
}

void health_skip(struct health *health, uint16_t way)
{
    if (way < health->count && health->ways[way].state == WAY_GOOD)
        health->ways[way].state = WAY_SKIP;
}

static void expect_probe(struct health *health, struct way *way, ns_t at)
{
    way->probe_at = at;
    if (health->probe_at > at)
        health->probe_at = at;
}

void health_lost(struct health *health, uint16_t number, ns_t round_trip, ns_t now)
{
    if (number >= health->count || health->ways[number].state >= WAY_BAD)
        return;
    struct way *way = &health->ways[number];
    ns_t lately = FORGET_ROUND_TRIPS * round_trip << way->relapses;
    if (!way->back_at || now - way->back_at > lately)
        way->relapses = 0;
    else if (way->relapses < MAX_RELAPSES)
        way->relapses++;
    way->state = WAY_BAD;
    way->wanted = (uint8_t)(1 << way->relapses);
    way->in_vain = 0;
    way->is_asked = false;
    health->good--;
    expect_probe(health, way, now);
}

void health_answered(struct health *health, uint16_t number, bool marked, ns_t now)
{
    if (number >= health->count || health->ways[number].state != WAY_BAD ||
        !health->ways[number].is_asked)
        return;
    struct way *way = &health->ways[number];
    way->is_asked = false;
    way->in_vain = 0;
    if (--way->wanted) {
        expect_probe(health, way, now);
        return;
    }
    way->state = marked ? WAY_SKIP : WAY_GOOD;
    way->back_at = now;
    health->good++;
}

void health_deny(struct health *health, uint16_t number, bool is_denied)
{
    if (number >= health->count || health_denies(health, number) == is_denied)
        return;
    struct way *way = &health->ways[number];
    health->good -= is_denied && way->state != WAY_BAD;
    health->good += !is_denied;
    health->denied = (uint16_t)(is_denied ? health->denied + 1 : health->denied - 1);
    *way = (struct way){.state = is_denied ? WAY_DENIED : WAY_GOOD};
}

bool health_denies(const struct health *health, uint16_t way)
{
    return way < health->count && health->ways && health->ways[way].state == WAY_DENIED;
}

uint16_t health_probe(struct health *health, ns_t round_trip, ns_t now)
{
    if (health->probe_at > now)
        return HEALTH_NO_WAY;
    uint16_t found = HEALTH_NO_WAY;
    ns_t next = NS_NEVER;
    for (uint16_t number = 0; number < health->count; number++) {
        struct way *way = &health->ways[number];
        if (way->state != WAY_BAD)
            continue;
        if (way->probe_at <= now && found == HEALTH_NO_WAY) {
            if (way->is_asked) { /* in vain: it begins anew */
                way->wanted = (uint8_t)(1 << way->relapses);
                way->in_vain += way->in_vain < MAX_BACKOFF;
            }
            way->is_asked = true;
            way->probe_at = now + (2 * round_trip << way->in_vain);
            found = number;
        }
        next = way->probe_at < next ? way->probe_at : next;
    }
    health->probe_at = next;
    return found;
}
