/* Members and groups: bookkeeping. */
#include "profile.h"

#include <stdlib.h>

void profile_init(struct sw_profile *p, const struct sw_profile_desc *desc)
{
    memset(p, 0, sizeof *p);
    p->desc = desc;
    p->free = p->groups_free = TABLE_NONE;
}

static void group_clear(struct sw_group *group)
{
    free(group->active);
    free(group->members);
    group->active = NULL;
    group->members = NULL;
    group->n_active = group->n_members = 0;
}

void profile_free(struct sw_profile *p)
{
    for (uint32_t i = 0; i < p->groups_room; i++)
        group_clear(&p->groups[i]);
    index_free(&p->by_id);
    index_free(&p->groups_by_id);
    free(p->members);
    free(p->info);
    free(p->groups);
    memset(p, 0, sizeof *p);
}

static uint64_t id_hash(uint32_t id)
{
    uint64_t word = id;
    return sw_mix(&word, 1);
}

uint32_t profile_find(const struct sw_profile *p, uint32_t id)
{
    uint64_t hash = id_hash(id), slot;
    if (!p->by_id.slots)
        return TABLE_NONE;
    for (uint32_t i = index_home(&p->by_id, hash); (slot = p->by_id.slots[i]) != 0;
         i = (i + 1) & p->by_id.mask)
        if (p->info[index_position(slot)].id == id)
            return index_position(slot);
    return TABLE_NONE;
}

uint32_t profile_find_group(const struct sw_profile *p, uint32_t id)
{
    uint64_t hash = id_hash(id), slot;
    if (!p->groups_by_id.slots)
        return TABLE_NONE;
    for (uint32_t i = index_home(&p->groups_by_id, hash); (slot = p->groups_by_id.slots[i]) != 0;
         i = (i + 1) & p->groups_by_id.mask)
        if (p->groups[index_position(slot)].id == id)
            return index_position(slot);
    return TABLE_NONE;
}

static bool grow(struct sw_profile *p)
{
    uint32_t room = p->room ? p->room * 2 : 8;
    uint8_t *members = realloc(p->members, (size_t)room * p->desc->stride);
    if (!members)
        return false;
    p->members = members;
    struct sw_member_info *info = realloc(p->info, room * sizeof *info);
    if (!info)
        return false;
    p->info = info;
    for (uint32_t i = room; i-- > p->room;) {
        info[i] = (struct sw_member_info){.next = p->free};
        p->free = i;
    }
    p->room = room;
    return true;
}

uint32_t profile_insert(struct sw_profile *p, uint32_t id)
{
    if (!index_reserve(&p->by_id) || (p->free == TABLE_NONE && !grow(p)))
        return TABLE_NONE;
    uint32_t position = p->free;
    p->free = p->info[position].next;
    p->info[position] = (struct sw_member_info){.id = id, .is_used = true};
    struct sw_member *member = profile_member(p, position, p->desc->stride);
    memset(member, 0, p->desc->stride);
    member->position = position;
    index_put(&p->by_id, id_hash(id), position);
    p->used++;
    return position;
}

void profile_remove(struct sw_profile *p, uint32_t position)
{
    index_remove(&p->by_id, id_hash(p->info[position].id), position);
    p->info[position] = (struct sw_member_info){.next = p->free};
    p->free = position;
    p->used--;
}

static bool grow_groups(struct sw_profile *p)
{
    uint32_t room = p->groups_room ? p->groups_room * 2 : 8;
    struct sw_group *groups = realloc(p->groups, room * sizeof *groups);
    if (!groups)
        return false;
    p->groups = groups;
    for (uint32_t i = room; i-- > p->groups_room;) {
        groups[i] = (struct sw_group){.next = p->groups_free};
        p->groups_free = i;
    }
    p->groups_room = room;
    return true;
}

uint32_t profile_insert_group(struct sw_profile *p, uint32_t id)
{
    if (!index_reserve(&p->groups_by_id) || (p->groups_free == TABLE_NONE && !grow_groups(p)))
        return TABLE_NONE;
    uint32_t position = p->groups_free;
    p->groups_free = p->groups[position].next;
    p->groups[position] = (struct sw_group){.id = id, .is_used = true};
    index_put(&p->groups_by_id, id_hash(id), position);
    p->groups_used++;
    return position;
}

static void release_members(struct sw_profile *p, struct sw_group *group)
{
    for (uint32_t i = 0; i < group->n_members; i++)
        p->info[group->members[i].position].references--;
}

void profile_remove_group(struct sw_profile *p, uint32_t position)
{
    struct sw_group *group = &p->groups[position];
    release_members(p, group);
    group_clear(group);
    index_remove(&p->groups_by_id, id_hash(group->id), position);
    *group = (struct sw_group){.next = p->groups_free};
    p->groups_free = position;
    p->groups_used--;
}

/* `active` has room for every member's weight. */
static void activate(struct sw_group *group, profile_port_up port_up, void *context)
{
    group->n_active = 0;
    for (uint32_t i = 0; i < group->n_members; i++) {
        const struct sw_group_member *m = &group->members[i];
        if (m->watch_port >= 0 && !port_up(context, (uint16_t)m->watch_port))
            continue;
        for (uint32_t w = 0; w < m->weight; w++)
            group->active[group->n_active++] = m->position;
    }
}

static int by_position(const void *a, const void *b)
{
    uint32_t x = ((const struct sw_group_member *)a)->position;
    uint32_t y = ((const struct sw_group_member *)b)->position;
    return (x > y) - (x < y);
}

bool profile_set_group(struct sw_profile *p, uint32_t position,
                       const struct sw_group_member *members, uint32_t n, profile_port_up port_up,
                       void *context)
{
    struct sw_group *group = &p->groups[position];
    size_t weights = 0;
    for (uint32_t i = 0; i < n; i++)
        weights += members[i].weight;
    struct sw_group_member *own = malloc((n ? n : 1) * sizeof *own);
    uint32_t *active = malloc((weights ? weights : 1) * sizeof *active);
    if (!own || !active) {
        free(own);
        free(active);
        return false;
    }
    memcpy(own, members, n * sizeof *own);
    qsort(own, n, sizeof *own, by_position);
    release_members(p, group);
    group_clear(group);
    group->members = own;
    group->n_members = n;
    group->active = active;
    for (uint32_t i = 0; i < n; i++)
        p->info[own[i].position].references++;
    activate(group, port_up, context);
    return true;
}

void profile_port_changed(struct sw_profile *p, profile_port_up port_up, void *context)
{
    for (uint32_t i = 0; i < p->groups_room; i++)
        if (p->groups[i].is_used)
            activate(&p->groups[i], port_up, context);
}
