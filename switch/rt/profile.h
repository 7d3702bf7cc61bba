/* Action profiles: actions with ids of their own, and groups of them to choose from by a hash.
 *
 * An entry of an indirect table holds a position here, so changing a member changes every entry
 * that uses it at once. A group keeps its active members in the order they were made, as BMv2
 * does: the hash modulo their number picks one. A member with weight w stands there w times; one
 * whose watched port is down does not stand there at all.
 */
#pragma once

#include "table.h"

struct sw_member {
    uint32_t action; /* the program's number */
    uint32_t position;
    uint64_t data[];
};

struct sw_member_info {
    uint32_t id;
    uint32_t references; /* by entries and groups */
    uint32_t next;       /* free: the next */
    bool is_used;
};

struct sw_group_member {
    uint32_t position, weight;
    int32_t watch_port; /* -1: none */
};

struct sw_group {
    uint32_t *active; /* positions of members */
    uint32_t n_active;
    uint32_t id, references, next;
    bool is_used;
    struct sw_group_member *members;
    uint32_t n_members;
};

struct sw_profile {
    const struct sw_profile_desc *desc;
    uint8_t *members;
    struct sw_member_info *info;
    struct sw_group *groups;
    struct sw_index by_id, groups_by_id;
    uint32_t room, free, used, groups_room, groups_free, groups_used;
};

static inline struct sw_member *profile_member(const struct sw_profile *p, uint32_t position,
                                               uint32_t stride)
{
    return (struct sw_member *)(p->members + (size_t)position * stride);
}

/* The member behind an indirect entry's action, choosing by `hash` in a group; NULL if the group
 * has no active member. */
static inline struct sw_member *profile_choose(const struct sw_profile *p, uint32_t action,
                                               uint64_t hash, uint32_t stride)
{
    if (!(action & SW_GROUP))
        return profile_member(p, action, stride);
    const struct sw_group *group = p->groups + (action & ~SW_GROUP);
    if (!group->n_active)
        return NULL;
    return profile_member(p, group->active[hash % group->n_active], stride);
}

void profile_init(struct sw_profile *p, const struct sw_profile_desc *desc);
void profile_free(struct sw_profile *p);

/* Positions by id, TABLE_NONE if there is none. */
uint32_t profile_find(const struct sw_profile *p, uint32_t id);
uint32_t profile_find_group(const struct sw_profile *p, uint32_t id);

/* New ones, empty; TABLE_NONE when memory is out. */
uint32_t profile_insert(struct sw_profile *p, uint32_t id);
uint32_t profile_insert_group(struct sw_profile *p, uint32_t id);

/* Both must be without references. */
void profile_remove(struct sw_profile *p, uint32_t position);
void profile_remove_group(struct sw_profile *p, uint32_t position);

/* Replace a group's members (positions, all there); `port_up` tells of watched ports. False, the
 * group as before, when memory is out. */
typedef bool (*profile_port_up)(void *context, uint16_t port);
bool profile_set_group(struct sw_profile *p, uint32_t position,
                       const struct sw_group_member *members, uint32_t n, profile_port_up port_up,
                       void *context);

/* A port went up or down: see which members are active. */
void profile_port_changed(struct sw_profile *p, profile_port_up port_up, void *context);
