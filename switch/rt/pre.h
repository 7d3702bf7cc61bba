/* The packet replication engine: multicast groups and clone sessions, by number. */
#pragma once

#include "base.h"

struct pre_replica {
    uint16_t port;
    uint16_t rid;
};

struct pre_set { /* a group, or a session */
    uint32_t id;
    uint32_t n;
    uint32_t max_bytes; /* sessions: truncate copies; 0 not */
    uint32_t group;     /* sessions: copies for this group too; 0 not */
    uint8_t priority;   /* sessions: the queue copies enter */
    struct pre_replica *replicas;
};

struct pre_table { /* sorted by id: there are few, and they change seldom */
    struct pre_set *sets;
    uint32_t n, room;
};

void pre_free(struct pre_table *table);
const struct pre_set *pre_find(const struct pre_table *table, uint32_t id);
/* Insert or replace; the replicas are copied. False when memory is out. */
bool pre_set(struct pre_table *table, const struct pre_set *set);
void pre_remove(struct pre_table *table, uint32_t id);
