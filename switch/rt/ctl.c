/* Carrying out control records. Every function here leaves the state as it was when it fails. */
#include "ctl.h"

#include <stdlib.h>

#include "meter.h"
#include "state.h"

enum { /* gRPC status codes */
    INVALID = 3,
    NOT_FOUND = 5,
    EXISTS = 6,
    DENIED = 7,
    EXHAUSTED = 8,
    PRECONDITION = 9,
    ABORTED = 10,
    OUT_OF_RANGE = 11,
};

const struct ctl_reason_text ctl_reasons[CTL_REASONS] = {
    [CTL_OK] = {0, ""},
    [CTL_MALFORMED] = {INVALID, "the request is malformed"},
    [CTL_NO_PROGRAM] = {PRECONDITION, "the switch runs no program: load one first"},
    [CTL_NO_OBJECT] = {NOT_FOUND, "the program has no such object"},
    [CTL_BAD_VERB] = {INVALID, "this object can only be modified"},
    [CTL_EXISTS] = {EXISTS, "it is there already: modify it instead"},
    [CTL_NOT_FOUND] = {NOT_FOUND, "there is nothing of this key or id: insert it first"},
    [CTL_FULL] = {EXHAUSTED, "no room is left: the program declares a larger size, or delete some"},
    [CTL_NO_MEMORY] = {EXHAUSTED, "memory is out"},
    [CTL_KEY_TOO_WIDE] = {INVALID, "a key has more bits than its field"},
    [CTL_MASK_TOO_WIDE] = {INVALID, "a mask has more bits than its field"},
    [CTL_PREFIX_TOO_LONG] = {INVALID, "a prefix is longer than its field"},
    [CTL_RANGE_EMPTY] = {INVALID, "a range ends before it starts"},
    [CTL_PARAM_TOO_WIDE] = {INVALID, "an argument has more bits than its parameter"},
    [CTL_BAD_ACTION] = {INVALID, "the table does not offer this action"},
    [CTL_WANTS_ACTION] = {INVALID, "the table takes actions, not members or groups"},
    [CTL_WANTS_MEMBER] = {INVALID, "the table has an action profile: name a member or group"},
    [CTL_WANTS_SELECTOR] = {INVALID, "the action profile has no selector, hence no groups"},
    [CTL_NO_MEMBER] = {NOT_FOUND, "the profile has no such member: insert it first"},
    [CTL_NO_GROUP] = {NOT_FOUND, "there is no such group: insert it first"},
    [CTL_IN_USE] = {PRECONDITION, "it is in use: delete what refers to it first"},
    [CTL_CONST_TABLE] = {DENIED, "the table's entries are part of the program"},
    [CTL_CONST_DEFAULT] = {DENIED, "the default action is part of the program"},
    [CTL_NO_TIMEOUT] = {INVALID, "the table does not support idle time-outs"},
    [CTL_BAD_INDEX] = {OUT_OF_RANGE, "the index is beyond the end of the array"},
    [CTL_NOT_DIRECT] = {INVALID, "the table has no such direct resource"},
    [CTL_BAD_PORT] = {INVALID, "a port number is too large: 0 to 511"},
    [CTL_BAD_RATES] = {INVALID, "the committed rate is above the peak rate"},
    [CTL_NOT_UNDOABLE] = {INVALID, "this cannot be undone, so no part of an atomic batch"},
    [CTL_ABORTED] = {ABORTED, "another operation of the batch failed"},
};

struct call {
    struct sw *sw;
    const struct sw_program *program;
    struct sw_state *state;
    ns_t now;
    const struct ctl_head *head;
    const uint8_t *end; /* of the record */
};

/* `n` items of a record from `at` on, or NULL if it is too short. */
static const void *items(const struct call *c, const void *at, size_t n, size_t size)
{
    const uint8_t *from = at;
    if (from > c->end || n > (size_t)(c->end - from) / size)
        return NULL;
    return at;
}

/* Actions */

static enum ctl_reason check_action(const struct call *c, uint32_t action, const uint32_t *offered,
                                    uint32_t n_offered, const void *data)
{
    uint32_t i = 0;
    while (i < n_offered && offered[i] != action)
        i++;
    if (i == n_offered)
        return CTL_BAD_ACTION;
    const struct sw_action_desc *desc = &c->program->actions[action];
    if (!items(c, data, desc->size, 1))
        return CTL_MALFORMED;
    for (uint32_t k = 0; k < desc->n_params; k++) {
        const struct sw_param_desc *param = &desc->params[k];
        const uint8_t *at = (const uint8_t *)data + param->at;
        unsigned bytes = param->bits <= 8 ? 1 : param->bits <= 16 ? 2 : param->bits <= 32 ? 4 : 8;
        if (param->bits > 64)
            bytes = (param->bits + 63u) / 64 * 8;
        for (unsigned bit = param->bits; bit < bytes * 8; bit++)
            if (at[bit / 8] >> bit % 8 & 1)
                return CTL_PARAM_TOO_WIDE;
    }
    return CTL_OK;
}

/* What an entry points at: an action, or a position in a profile. */
static enum ctl_reason resolve(const struct call *c, const struct sw_table_desc *desc,
                               const struct ctl_table *r, const void *data, uint32_t *action)
{
    *action = r->id;
    if (desc->profile == SW_NO_PROFILE) {
        if (r->target != CTL_TO_ACTION)
            return CTL_WANTS_ACTION;
        return check_action(c, r->id, desc->actions, desc->n_actions, data);
    }
    const struct sw_profile *profile = &c->state->profiles[desc->profile];
    if (r->target == CTL_TO_ACTION)
        return CTL_WANTS_MEMBER;
    if (r->target == CTL_TO_MEMBER) {
        *action = profile_find(profile, r->id);
        return *action == TABLE_NONE ? CTL_NO_MEMBER : CTL_OK;
    }
    if (!profile->desc->has_selector)
        return CTL_WANTS_SELECTOR;
    uint32_t group = profile_find_group(profile, r->id);
    *action = group | SW_GROUP;
    return group == TABLE_NONE ? CTL_NO_GROUP : CTL_OK;
}

static void refer(const struct call *c, const struct sw_table_desc *desc, uint32_t action, int by)
{
    if (desc->profile == SW_NO_PROFILE || action == SW_NO_ACTION)
        return;
    struct sw_profile *profile = &c->state->profiles[desc->profile];
    uint32_t *references = action & SW_GROUP ? &profile->groups[action & ~SW_GROUP].references
                                             : &profile->info[action].references;
    *references += (uint32_t)by;
}

static void set_action(const struct call *c, const struct sw_table_desc *desc, struct sw_entry *e,
                       uint32_t action, const void *data)
{
    e->action = action;
    memset(entry_at(e, desc->data_at), 0, desc->stride - desc->data_at);
    if (desc->profile == SW_NO_PROFILE && action != SW_NO_ACTION)
        memcpy(entry_at(e, desc->data_at), data, c->program->actions[action].size);
}

/* Table entries */

/* Read a record's match part and check it; `*rest` is what follows in the record. */
static enum ctl_reason read_match(const struct call *c, const struct sw_table_desc *desc,
                                  const struct ctl_table *r, struct sw_match_spec *spec,
                                  const void **rest)
{
    const uint64_t *key = items(c, r + 1, desc->key_words, sizeof *key);
    bool has_mask = desc->match == SW_TERNARY || desc->match == SW_RANGE;
    const uint64_t *mask = key ? key + desc->key_words : NULL;
    if (!key || (has_mask && !items(c, mask, desc->key_words, sizeof *mask)))
        return CTL_MALFORMED;
    uint64_t spare_key[TABLE_KEY_WORDS_MAX], spare_mask[TABLE_KEY_WORDS_MAX];
    memcpy(spare_key, key, desc->key_words * sizeof *key);
    if (has_mask)
        memcpy(spare_mask, mask, desc->key_words * sizeof *mask);
    for (uint32_t i = 0; i < desc->n_keys; i++) {
        const struct sw_key_desc *field = &desc->keys[i];
        if (field->match == SW_LPM && desc->match == SW_LPM && r->prefix > field->width)
            return CTL_PREFIX_TOO_LONG;
        for (unsigned bit = field->shift; bit < field->shift + field->width; bit++) {
            spare_key[bit / 64] &= ~((uint64_t)1 << bit % 64);
            if (has_mask)
                spare_mask[bit / 64] &= ~((uint64_t)1 << bit % 64);
        }
        if (field->match == SW_RANGE) {
            bool above = false;
            for (unsigned bit = field->shift; bit < field->shift + field->width; bit++) {
                unsigned low = key[bit / 64] >> bit % 64 & 1, high = mask[bit / 64] >> bit % 64 & 1;
                above = low == high ? above : low > high;
            }
            if (above)
                return CTL_RANGE_EMPTY;
        }
    }
    for (uint32_t w = 0; w < desc->key_words; w++) {
        if (spare_key[w])
            return CTL_KEY_TOO_WIDE;
        if (has_mask && spare_mask[w])
            return CTL_MASK_TOO_WIDE;
    }
    *spec = (struct sw_match_spec){key, mask, r->prefix, r->priority};
    *rest = has_mask ? mask + desc->key_words : mask;
    return CTL_OK;
}

static void watch_idle(struct sw *sw, struct sw_table *t, uint32_t position, ns_t timeout, ns_t now)
{
    struct sw_entry_info *info = &t->info[position];
    t->n_timeouts += (timeout != 0) - (info->idle_timeout != 0);
    info->idle_timeout = timeout;
    info->told_idle = false;
    if (timeout && now + timeout < sw->idle_check)
        sw->idle_check = now + timeout;
}

/* The record as one that names an entry, by its table and its match part. */
static enum ctl_reason read_named(const struct call *c, const struct ctl_table **r,
                                  struct sw_table **t, struct sw_match_spec *spec,
                                  const void **rest)
{
    *r = items(c, c->head, 1, sizeof **r);
    if (!*r)
        return CTL_MALFORMED;
    if (c->head->object >= c->program->n_tables)
        return CTL_NO_OBJECT;
    *t = &c->state->tables[c->head->object];
    return read_match(c, (*t)->desc, *r, spec, rest);
}

static enum ctl_reason write_table(const struct call *c)
{
    const struct ctl_table *r;
    struct sw_table *t;
    struct sw_match_spec spec;
    const void *data;
    enum ctl_reason reason = read_named(c, &r, &t, &spec, &data);
    if (reason)
        return reason;
    const struct sw_table_desc *desc = t->desc;
    if (desc->is_const && !(c->head->flags & CTL_BY_PROGRAM))
        return CTL_CONST_TABLE;
    uint32_t position = table_find(t, &spec);
    if (position != TABLE_NONE && t->info[position].is_const)
        return CTL_CONST_TABLE;
    if (c->head->verb == CTL_DELETE) {
        if (position == TABLE_NONE)
            return CTL_NOT_FOUND;
        refer(c, desc, table_at(t, position)->action, -1);
        table_remove(t, position);
        c->state->n_large -= t->used == SW_WARM_MIN - 1;
        state_note(c->state, c->head->object);
        return CTL_OK;
    }
    uint32_t action;
    if ((reason = resolve(c, desc, r, data, &action)))
        return reason;
    if (r->idle_timeout && !desc->hit_at)
        return CTL_NO_TIMEOUT;
    if (c->head->verb == CTL_INSERT) {
        if (position != TABLE_NONE)
            return CTL_EXISTS;
        if (t->used >= desc->max_size && !(c->head->flags & CTL_BY_PROGRAM))
            return CTL_FULL;
        position = table_insert(t, &spec, c->now);
        if (position == TABLE_NONE)
            return CTL_NO_MEMORY;
        t->info[position].is_const = c->head->flags & CTL_BY_PROGRAM;
        c->state->n_large += t->used == SW_WARM_MIN;
        state_note(c->state, c->head->object);
    } else if (position == TABLE_NONE) {
        return CTL_NOT_FOUND;
    } else {
        refer(c, desc, table_at(t, position)->action, -1);
    }
    set_action(c, desc, table_at(t, position), action, data);
    refer(c, desc, action, 1);
    watch_idle(c->sw, t, position, r->idle_timeout, c->now);
    return CTL_OK;
}

static enum ctl_reason write_default(const struct call *c)
{
    const struct ctl_table *r = items(c, c->head, 1, sizeof *r);
    if (!r || c->head->object >= c->program->n_tables)
        return r ? CTL_NO_OBJECT : CTL_MALFORMED;
    struct sw_table *t = &c->state->tables[c->head->object];
    const struct sw_table_desc *desc = t->desc;
    const void *data = r + 1;
    uint32_t action = r->id;
    if (r->target == CTL_TO_ACTION && r->id == SW_NO_ACTION) {
        action = desc->default_action;
        data = desc->default_data;
    } else {
        if (desc->default_is_const)
            return CTL_CONST_DEFAULT;
        enum ctl_reason reason = resolve(c, desc, r, data, &action);
        if (reason)
            return reason;
    }
    refer(c, desc, t->fallback->action, -1);
    set_action(c, desc, t->fallback, action, data);
    state_note(c->state, c->head->object);
    refer(c, desc, action, 1);
    return CTL_OK;
}

/* Profiles */

static enum ctl_reason write_member(const struct call *c)
{
    const struct ctl_member *r = items(c, c->head, 1, sizeof *r);
    if (!r || c->head->object >= c->program->n_profiles)
        return r ? CTL_NO_OBJECT : CTL_MALFORMED;
    struct sw_profile *p = &c->state->profiles[c->head->object];
    const struct sw_profile_desc *desc = p->desc;
    uint32_t position = profile_find(p, r->id);
    if (c->head->verb != CTL_INSERT && position == TABLE_NONE)
        return CTL_NO_MEMBER;
    if (c->head->verb == CTL_DELETE) {
        if (p->info[position].references)
            return CTL_IN_USE;
        profile_remove(p, position);
        return CTL_OK;
    }
    enum ctl_reason reason = check_action(c, r->action, desc->actions, desc->n_actions, r + 1);
    if (reason)
        return reason;
    if (c->head->verb == CTL_INSERT) {
        if (position != TABLE_NONE)
            return CTL_EXISTS;
        if (p->used >= desc->max_size)
            return CTL_FULL;
        if ((position = profile_insert(p, r->id)) == TABLE_NONE)
            return CTL_NO_MEMORY;
    }
    struct sw_member *member = profile_member(p, position, desc->stride);
    member->action = r->action;
    memcpy(member->data, r + 1, c->program->actions[r->action].size);
    return CTL_OK;
}

static bool port_up(void *context, uint16_t number)
{
    const struct sw *sw = context;
    return number < SW_PORTS && sw->ports[number] && sw->ports[number]->is_up;
}

static enum ctl_reason write_group(const struct call *c)
{
    const struct ctl_group *r = items(c, c->head, 1, sizeof *r);
    if (!r || c->head->object >= c->program->n_profiles)
        return r ? CTL_NO_OBJECT : CTL_MALFORMED;
    struct sw_profile *p = &c->state->profiles[c->head->object];
    const struct ctl_group_member *wanted = items(c, r + 1, r->n, sizeof *wanted);
    if (!wanted)
        return CTL_MALFORMED;
    if (!p->desc->has_selector)
        return CTL_WANTS_SELECTOR;
    uint32_t position = profile_find_group(p, r->id);
    if (c->head->verb != CTL_INSERT && position == TABLE_NONE)
        return CTL_NO_GROUP;
    if (c->head->verb == CTL_INSERT && position != TABLE_NONE)
        return CTL_EXISTS;
    if (c->head->verb == CTL_DELETE) {
        if (p->groups[position].references)
            return CTL_IN_USE;
        profile_remove_group(p, position);
        return CTL_OK;
    }
    struct sw_group_member *members = malloc((r->n ? r->n : 1) * sizeof *members);
    if (!members)
        return CTL_NO_MEMORY;
    enum ctl_reason reason = CTL_OK;
    for (uint32_t i = 0; i < r->n && !reason; i++) {
        uint32_t member = profile_find(p, wanted[i].id);
        members[i] = (struct sw_group_member){member, wanted[i].weight, wanted[i].watch_port};
        if (member == TABLE_NONE)
            reason = CTL_NO_MEMBER;
    }
    bool is_new = position == TABLE_NONE;
    if (!reason && is_new && (position = profile_insert_group(p, r->id)) == TABLE_NONE)
        reason = CTL_NO_MEMORY;
    if (!reason && !profile_set_group(p, position, members, r->n, port_up, c->sw)) {
        if (is_new)
            profile_remove_group(p, position);
        reason = CTL_NO_MEMORY;
    }
    free(members);
    return reason;
}

/* Replication */

static enum ctl_reason write_replicas(const struct call *c, struct pre_table *table)
{
    const struct ctl_replicas *r = items(c, c->head, 1, sizeof *r);
    const struct ctl_replica *wanted = r ? items(c, r + 1, r->n, sizeof *wanted) : NULL;
    if (!wanted)
        return CTL_MALFORMED;
    bool there = pre_find(table, c->head->object) != NULL;
    if (c->head->verb == CTL_INSERT && there)
        return CTL_EXISTS;
    if (c->head->verb != CTL_INSERT && !there)
        return CTL_NOT_FOUND;
    if (c->head->verb == CTL_DELETE) {
        pre_remove(table, c->head->object);
        return CTL_OK;
    }
    struct pre_replica *replicas = malloc((r->n ? r->n : 1) * sizeof *replicas);
    if (!replicas)
        return CTL_NO_MEMORY;
    enum ctl_reason reason = CTL_OK;
    for (uint32_t i = 0; i < r->n; i++) {
        if (wanted[i].port >= SW_PORTS)
            reason = CTL_BAD_PORT;
        replicas[i] = (struct pre_replica){(uint16_t)wanted[i].port, (uint16_t)wanted[i].rid};
    }
    struct pre_set set = {c->head->object, r->n, r->max_bytes, r->group,
                          (uint8_t)(r->priority % SW_QUEUES), replicas};
    if (!reason && !pre_set(table, &set))
        reason = CTL_NO_MEMORY;
    free(replicas);
    return reason;
}

/* Counters, meters, registers */

struct span {
    uint64_t first, last;
};

static enum ctl_reason cells(const struct call *c, const struct sw_array_desc *arrays, uint32_t n,
                             size_t words, const struct ctl_cell **r, struct span *span)
{
    *r = items(c, c->head, 1, sizeof **r);
    if (!*r || !items(c, (*r)->value, words, sizeof(uint64_t)))
        return CTL_MALFORMED;
    if (c->head->object >= n)
        return CTL_NO_OBJECT;
    uint64_t size = arrays[c->head->object].size;
    if ((*r)->index != CTL_ALL && (*r)->index >= size)
        return CTL_BAD_INDEX;
    *span = (*r)->index == CTL_ALL ? (struct span){0, size}
                                   : (struct span){(*r)->index, (*r)->index + 1};
    return CTL_OK;
}

static enum ctl_reason write_counter(const struct call *c)
{
    const struct ctl_cell *r;
    struct span span;
    enum ctl_reason reason = cells(c, c->program->counters, c->program->n_counters, 2, &r, &span);
    for (uint64_t i = span.first; !reason && i < span.last; i++)
        c->state->counters[c->head->object][i] = (struct sw_counter){r->value[0], r->value[1]};
    return reason;
}

static enum ctl_reason set_meter(struct sw_meter *m, const uint64_t *value, ns_t now)
{
    if (value[0] && value[1] > value[3])
        return CTL_BAD_RATES;
    if (value[0])
        meter_set(m, value + 1, now);
    else
        m->configured = false;
    return CTL_OK;
}

static enum ctl_reason write_meter(const struct call *c)
{
    const struct ctl_cell *r;
    struct span span;
    enum ctl_reason reason = cells(c, c->program->meters, c->program->n_meters, 5, &r, &span);
    for (uint64_t i = span.first; !reason && i < span.last; i++)
        reason = set_meter(&c->state->meters[c->head->object][i], r->value, c->now);
    return reason;
}

static enum ctl_reason write_register(const struct call *c)
{
    if (c->head->object >= c->program->n_registers)
        return CTL_NO_OBJECT;
    const struct sw_array_desc *desc = &c->program->registers[c->head->object];
    const struct ctl_cell *r;
    struct span span;
    size_t words = (desc->width + 63) / 64;
    enum ctl_reason reason =
        cells(c, c->program->registers, c->program->n_registers, words, &r, &span);
    if (reason)
        return reason;
    if (desc->width % 64 && r->value[words - 1] >> desc->width % 64)
        return CTL_PARAM_TOO_WIDE;
    struct sw_cells array = state_register(c->state, c->head->object);
    for (uint64_t i = span.first; i < span.last; i++)
        memcpy(sw_cell(&array, (uint32_t)i), r->value, desc->cell_bytes);
    return CTL_OK;
}

/* Direct resources: the entry is named by its match part. */
static enum ctl_reason write_direct(const struct call *c)
{
    const struct ctl_table *r;
    struct sw_table *t;
    struct sw_match_spec spec;
    const void *rest;
    enum ctl_reason reason = read_named(c, &r, &t, &spec, &rest);
    if (reason)
        return reason;
    const struct sw_table_desc *desc = t->desc;
    bool is_meter = c->head->kind == CTL_DIRECT_METER;
    const uint64_t *value = items(c, rest, is_meter ? 5 : 2, sizeof *value);
    if (!value)
        return CTL_MALFORMED;
    uint32_t at = is_meter ? desc->meter_at : desc->counter_at;
    if (!at)
        return CTL_NOT_DIRECT;
    uint32_t position = table_find(t, &spec);
    if (position == TABLE_NONE)
        return CTL_NOT_FOUND;
    void *resource = entry_at(table_at(t, position), at);
    if (is_meter)
        return set_meter(resource, value, c->now);
    *(struct sw_counter *)resource = (struct sw_counter){value[0], value[1]};
    return CTL_OK;
}

/* Value sets and digests */

static enum ctl_reason write_value_set(const struct call *c)
{
    const struct ctl_value_set *r = items(c, c->head, 1, sizeof *r);
    if (!r || c->head->object >= c->program->n_value_sets)
        return r ? CTL_NO_OBJECT : CTL_MALFORMED;
    size_t words = c->program->value_sets[c->head->object].cell_bytes / 8;
    const uint64_t *members = items(c, r + 1, r->n, 2 * words * sizeof *members);
    if (!members)
        return CTL_MALFORMED;
    size_t size = r->n * 2 * words * sizeof *members;
    uint64_t *own = malloc(size ? size : 1);
    if (!own)
        return CTL_NO_MEMORY;
    memcpy(own, members, size);
    struct sw_value_set *set = &c->state->value_sets[c->head->object];
    free(set->members);
    *set = (struct sw_value_set){r->n, (uint32_t)words, own};
    return CTL_OK;
}

static enum ctl_reason write_digest(const struct call *c)
{
    const struct ctl_digest *r = items(c, c->head, 1, sizeof *r);
    if (!r || c->head->object >= c->program->n_digests)
        return r ? CTL_NO_OBJECT : CTL_MALFORMED;
    if (c->head->kind == CTL_DIGEST_ACK) {
        digest_ack(c->sw, c->head->object, r->list_id);
        return CTL_OK;
    }
    bool there = c->sw->digests[c->head->object].enabled;
    if (c->head->verb == CTL_INSERT && there)
        return CTL_EXISTS;
    if (c->head->verb != CTL_INSERT && !there)
        return CTL_NOT_FOUND;
    bool ok = digest_configure(c->sw, c->head->object, c->head->verb != CTL_DELETE, r->max_timeout,
                               r->max_list, r->ack_timeout);
    return ok || c->head->verb == CTL_DELETE ? CTL_OK : CTL_NO_MEMORY;
}

static enum ctl_reason carry_out(const struct call *c)
{
    if (!c->program)
        return CTL_NO_PROGRAM;
    if (c->head->verb < CTL_INSERT || c->head->verb > CTL_DELETE)
        return CTL_MALFORMED;
    switch ((enum ctl_kind)c->head->kind) {
    case CTL_TABLE:
        return write_table(c);
    case CTL_DEFAULT:
        return write_default(c);
    case CTL_MEMBER:
        return write_member(c);
    case CTL_GROUP:
        return write_group(c);
    case CTL_MULTICAST:
        return write_replicas(c, &c->sw->groups);
    case CTL_CLONE:
        return write_replicas(c, &c->sw->sessions);
    case CTL_COUNTER:
        return write_counter(c);
    case CTL_METER:
        return write_meter(c);
    case CTL_REGISTER:
        return write_register(c);
    case CTL_DIRECT_COUNTER:
    case CTL_DIRECT_METER:
        return write_direct(c);
    case CTL_VALUE_SET:
        return write_value_set(c);
    case CTL_DIGEST:
    case CTL_DIGEST_ACK:
        return write_digest(c);
    }
    return CTL_MALFORMED;
}

/* Between two batches nobody keeps sequence numbers. */
static void renumber_tables(struct sw *sw)
{
    for (uint32_t i = 0; sw->program && i < sw->program->n_tables; i++)
        table_renumber(&sw->state.tables[i]);
}

size_t ctl_write(struct sw *sw, const void *records, size_t length, struct ctl_result *results,
                 size_t most, ns_t now)
{
    size_t at = 0;
    renumber_tables(sw);
    for (size_t n = 0; n < most && length - at >= sizeof(struct ctl_head); n++) {
        const struct ctl_head *head = (const void *)((const uint8_t *)records + at);
        bool whole = head->length >= sizeof *head && head->length <= length - at &&
                     head->length % 8 == 0;
        const uint8_t *end = (const uint8_t *)head + (whole ? head->length : sizeof *head);
        struct call c = {sw, sw->program, &sw->state, now, head, end};
        results[n].reason = whole ? carry_out(&c) : CTL_MALFORMED;
        at = whole ? at + head->length : length;
    }
    return at;
}

/* All or nothing. Before each record is carried out, a record that undoes it is noted: an insert is
 * undone by a delete, a delete by inserting what was there, a modification by modifying back. So
 * undoing is carrying out the noted records, last one first. */

struct undo {
    struct undo *before;
    struct {                    /* of a table's entry, what no record says: */
        uint32_t sequence;      /* its table's, before */
        bool was_there;         /* all else is then its own */
        uint32_t own_sequence;  /* which decides between entries of one priority */
        ns_t hit;
        bool told_idle;
        struct sw_counter counter;
        struct sw_meter meter;
    } kept;
    uint64_t record[];
};

static void *undo_record(struct undo **log, const struct ctl_head *like, size_t size)
{
    struct undo *u = calloc(1, sizeof *u + size);
    if (!u)
        return NULL;
    u->before = *log;
    *log = u;
    struct ctl_head *head = (struct ctl_head *)u->record;
    *head = *like;
    head->length = (uint32_t)size;
    return head;
}

static uint16_t opposite(uint16_t verb)
{
    return verb == CTL_INSERT ? CTL_DELETE : verb == CTL_DELETE ? CTL_INSERT : CTL_MODIFY;
}

/* The match part of a record with another entry's target and data behind it. */
static bool undo_table(struct undo **log, const struct call *c, const struct ctl_entry *was)
{
    const struct ctl_table *r = (const void *)c->head;
    const struct sw_table_desc *desc = &c->program->tables[c->head->object];
    bool is_default = c->head->kind == CTL_DEFAULT;
    bool has_mask = desc->match == SW_TERNARY || desc->match == SW_RANGE;
    size_t match = is_default ? 0 : desc->key_words * (has_mask ? 16u : 8u);
    size_t data = desc->stride - desc->data_at;
    struct ctl_table *u = undo_record(log, c->head, sizeof *u + match + data);
    if (!u)
        return false;
    u->head.verb = is_default ? CTL_MODIFY : opposite(c->head->verb);
    u->priority = r->priority;
    u->prefix = r->prefix;
    memcpy(u + 1, r + 1, match);
    if (was) {
        u->idle_timeout = was->idle_timeout;
        u->target = was->target;
        u->id = was->id;
        const uint8_t *old = (const uint8_t *)(was + 1) + 16 * (size_t)desc->key_words;
        memcpy((uint8_t *)(u + 1) + match, old, data);
    }
    return true;
}

/* Copy what an entry has gathered, to or from where it is kept. */
static void carry_state(const struct sw_table_desc *desc, struct sw_entry *e,
                        struct sw_entry_info *info, struct undo *u, bool back)
{
    struct {
        void *here, *kept;
        size_t size;
    } parts[] = {
        {desc->counter_at ? entry_at(e, desc->counter_at) : NULL, &u->kept.counter,
         sizeof u->kept.counter},
        {desc->hit_at ? entry_at(e, desc->hit_at) : NULL, &u->kept.hit, sizeof u->kept.hit},
        {desc->meter_at ? entry_at(e, desc->meter_at) : NULL, &u->kept.meter, sizeof u->kept.meter},
        {&info->told_idle, &u->kept.told_idle, sizeof u->kept.told_idle},
    };
    for (unsigned i = 0; i < SW_COUNT(parts); i++)
        if (parts[i].here)
            memcpy(back ? parts[i].here : parts[i].kept, back ? parts[i].kept : parts[i].here,
                   parts[i].size);
}

static uint32_t entry_of(const struct call *c, const struct ctl_table *r)
{
    struct sw_table *t = &c->state->tables[c->head->object];
    struct sw_match_spec spec;
    const void *rest;
    return read_match(c, t->desc, r, &spec, &rest) ? TABLE_NONE : table_find(t, &spec);
}

static void keep_state(const struct call *c, const struct ctl_table *r, struct undo *u)
{
    struct sw_table *t = &c->state->tables[c->head->object];
    uint32_t position = entry_of(c, r);
    u->kept.sequence = t->sequence;
    u->kept.was_there = position != TABLE_NONE;
    if (!u->kept.was_there)
        return;
    u->kept.own_sequence = table_sequence(t, position);
    carry_state(t->desc, table_at(t, position), &t->info[position], u, false);
}

/* A table's entry is as it was, its turn among others and what it has counted included. */
static void take_back_entry(struct call *c, struct undo *u)
{
    struct sw_table *t = &c->state->tables[c->head->object];
    if (u->kept.was_there)
        t->sequence = u->kept.own_sequence; /* of what is inserted now */
    carry_out(c);
    uint32_t position = u->kept.was_there ? entry_of(c, (const void *)c->head) : TABLE_NONE;
    if (position != TABLE_NONE)
        carry_state(t->desc, table_at(t, position), &t->info[position], u, true);
    t->sequence = u->kept.sequence;
}

static bool note_table(struct undo **log, const struct call *c)
{
    const struct ctl_table *r = (const void *)c->head;
    const struct sw_table_desc *desc;
    if (c->head->length < sizeof *r || c->head->object >= c->program->n_tables)
        return true; /* it will fail */
    desc = &c->program->tables[c->head->object];
    bool has_mask = desc->match == SW_TERNARY || desc->match == SW_RANGE;
    if (c->head->kind == CTL_TABLE && !items(c, r + 1, desc->key_words, has_mask ? 16 : 8))
        return true;
    void *was = malloc(ctl_entry_size(c->sw, c->head->object));
    if (!was)
        return false;
    size_t size = c->head->kind == CTL_DEFAULT
                      ? ctl_read_default(c->sw, c->head->object, was, c->now)
                      : ctl_read_entry(c->sw, r, was, c->now);
    bool ok = undo_table(log, c, size ? was : NULL);
    if (ok && c->head->kind == CTL_TABLE)
        keep_state(c, r, *log);
    free(was);
    return ok;
}

static bool note_replicas(struct undo **log, const struct call *c, const struct pre_table *table)
{
    const struct pre_set *was = pre_find(table, c->head->object);
    uint32_t n = was ? was->n : 0;
    struct ctl_replicas *u = undo_record(log, c->head, sizeof *u + n * sizeof(struct ctl_replica));
    if (!u)
        return false;
    u->head.verb = opposite(c->head->verb);
    if (!was)
        return true;
    u->n = n;
    u->max_bytes = was->max_bytes;
    u->priority = was->priority;
    u->group = was->group;
    struct ctl_replica *replicas = (void *)(u + 1);
    for (uint32_t i = 0; i < n; i++)
        replicas[i] = (struct ctl_replica){was->replicas[i].port, was->replicas[i].rid};
    return true;
}

static bool note_profile(struct undo **log, const struct call *c)
{
    const struct ctl_member *r = (const void *)c->head; /* a group's id is in the same place */
    if (c->head->length < sizeof *r || c->head->object >= c->program->n_profiles)
        return true;
    const struct sw_profile *p = &c->state->profiles[c->head->object];
    if (c->head->kind == CTL_MEMBER) {
        uint32_t position = profile_find(p, r->id);
        size_t data = p->desc->stride - sizeof(struct sw_member);
        struct ctl_member *u = undo_record(log, c->head, sizeof *u + data);
        if (!u)
            return false;
        u->head.verb = opposite(c->head->verb);
        u->id = r->id;
        if (position != TABLE_NONE) {
            const struct sw_member *was = profile_member(p, position, p->desc->stride);
            u->action = was->action;
            memcpy(u + 1, was->data, data);
        }
        return true;
    }
    uint32_t position = profile_find_group(p, r->id);
    const struct sw_group *was = position == TABLE_NONE ? NULL : &p->groups[position];
    uint32_t n = was ? was->n_members : 0;
    struct ctl_group *u = undo_record(log, c->head, sizeof *u + n * sizeof(struct ctl_group_member));
    if (!u)
        return false;
    u->head.verb = opposite(c->head->verb);
    u->id = r->id;
    u->n = n;
    struct ctl_group_member *members = (void *)(u + 1);
    for (uint32_t i = 0; i < n; i++)
        members[i] = (struct ctl_group_member){p->info[was->members[i].position].id,
                                               was->members[i].weight, was->members[i].watch_port, 0};
    return true;
}

/* False if what is there cannot be noted: such records are refused in a whole batch. */
static bool note(struct undo **log, const struct call *c)
{
    switch ((enum ctl_kind)c->head->kind) {
    case CTL_TABLE:
    case CTL_DEFAULT:
        return note_table(log, c);
    case CTL_MEMBER:
    case CTL_GROUP:
        return note_profile(log, c);
    case CTL_MULTICAST:
        return note_replicas(log, c, &c->sw->groups);
    case CTL_CLONE:
        return note_replicas(log, c, &c->sw->sessions);
    default:
        return false;
    }
}

static void take_back(struct call *c, struct undo *log)
{
    while (log) {
        struct undo *u = log;
        log = u->before;
        c->head = (const struct ctl_head *)u->record;
        c->end = (const uint8_t *)u->record + c->head->length;
        if (c->head->kind == CTL_TABLE)
            take_back_entry(c, u);
        else
            carry_out(c);
        free(u);
    }
}

static void forget(struct undo *log)
{
    while (log) {
        struct undo *u = log;
        log = u->before;
        free(u);
    }
}

bool ctl_write_whole(struct sw *sw, const void *records, size_t length,
                     struct ctl_result *results, ns_t now)
{
    struct undo *log = NULL;
    struct call c = {sw, sw->program, &sw->state, now, NULL, NULL};
    size_t n = 0, at = 0;
    enum ctl_reason reason = CTL_OK;
    renumber_tables(sw);
    for (; !reason && length - at >= sizeof(struct ctl_head); n++) {
        c.head = (const void *)((const uint8_t *)records + at);
        bool whole = c.head->length >= sizeof *c.head && c.head->length <= length - at &&
                     c.head->length % 8 == 0;
        c.end = (const uint8_t *)c.head + c.head->length;
        struct undo *before = log;
        if (!whole)
            reason = CTL_MALFORMED;
        else if (!sw->program)
            reason = CTL_NO_PROGRAM;
        else if (!note(&log, &c))
            reason = CTL_NOT_UNDOABLE;
        else if ((reason = carry_out(&c)) != CTL_OK && log != before) {
            struct undo *unused = log;
            log = before;
            free(unused);
        }
        results[n].reason = reason;
        at += c.head->length;
    }
    if (!reason) {
        forget(log);
        return true;
    }
    for (size_t i = 0; i + 1 < n; i++)
        results[i].reason = CTL_ABORTED;
    for (; length - at >= sizeof(struct ctl_head) && at < length; n++) {
        const struct ctl_head *head = (const void *)((const uint8_t *)records + at);
        results[n].reason = CTL_ABORTED;
        if (head->length < sizeof *head || head->length > length - at)
            break;
        at += head->length;
    }
    take_back(&c, log);
    return false;
}

/* Reads */

static uint32_t id_of(const struct sw_state *state, const struct sw_table_desc *desc,
                      uint32_t action, uint32_t *target)
{
    *target = CTL_TO_ACTION;
    if (desc->profile == SW_NO_PROFILE || action == SW_NO_ACTION)
        return action;
    const struct sw_profile *p = &state->profiles[desc->profile];
    *target = action & SW_GROUP ? CTL_TO_GROUP : CTL_TO_MEMBER;
    return action & SW_GROUP ? p->groups[action & ~SW_GROUP].id : p->info[action].id;
}

size_t ctl_entry_size(const struct sw *sw, uint32_t table)
{
    const struct sw_table_desc *desc = &sw->program->tables[table];
    return sizeof(struct ctl_entry) + 16 * (size_t)desc->key_words + desc->stride - desc->data_at;
}

static size_t put_entry(struct sw *sw, uint32_t table, const struct sw_entry *e,
                        const struct sw_entry_info *info, void *out, ns_t now)
{
    const struct sw_table *t = &sw->state.tables[table];
    const struct sw_table_desc *desc = t->desc;
    size_t words = desc->key_words;
    struct ctl_entry *r = out;
    memset(r, 0, ctl_entry_size(sw, table));
    r->table = table;
    r->id = id_of(&sw->state, desc, e->action, &r->target);
    uint64_t *key = (uint64_t *)(r + 1), *mask = key + words;
    if (info) {
        r->position = e->position;
        r->priority = info->priority;
        r->prefix = info->prefix;
        r->idle_timeout = info->idle_timeout;
        r->is_const = info->is_const;
        if (desc->hit_at)
            r->idle = now - *(const ns_t *)entry_at(e, desc->hit_at);
        memcpy(key, e->key, words * sizeof *key);
        if (info->tuple)
            memcpy(mask, info->tuple->mask, words * sizeof *mask);
        for (size_t w = 0; t->highs && w < words; w++)
            mask[w] |= t->highs[(size_t)e->position * words + w] & t->range_masks[w];
    } else {
        r->position = TABLE_NONE;
    }
    if (desc->counter_at) {
        const struct sw_counter *counter = entry_at(e, desc->counter_at);
        r->packets = counter->packets;
        r->bytes = counter->bytes;
    }
    if (desc->meter_at) {
        const struct sw_meter *m = entry_at(e, desc->meter_at);
        uint64_t rates[4] = {m->committed.rate, m->committed.burst, m->peak.rate, m->peak.burst};
        r->has_rates = m->configured;
        memcpy(r->rates, rates, sizeof rates);
    }
    memcpy(mask + words, entry_at(e, desc->data_at), desc->stride - desc->data_at);
    return ctl_entry_size(sw, table);
}

size_t ctl_put_entry(struct sw *sw, uint32_t table, uint32_t position, void *out, ns_t now)
{
    struct sw_table *t = &sw->state.tables[table];
    return put_entry(sw, table, table_at(t, position), &t->info[position], out, now);
}

size_t ctl_read_entries(struct sw *sw, uint32_t table, uint32_t *position, void *out, size_t room,
                        ns_t now)
{
    if (!sw->program || table >= sw->program->n_tables) {
        *position = TABLE_NONE;
        return 0;
    }
    const struct sw_table *t = &sw->state.tables[table];
    size_t size = ctl_entry_size(sw, table), done = 0;
    uint32_t i = *position;
    for (; i < t->room; i++) {
        if (!t->info[i].is_used)
            continue;
        if (done + size > room)
            break;
        done += ctl_put_entry(sw, table, i, (uint8_t *)out + done, now);
    }
    *position = i < t->room ? i : TABLE_NONE;
    return done;
}

size_t ctl_read_entry(struct sw *sw, const struct ctl_table *record, void *out, ns_t now)
{
    const uint8_t *end = (const uint8_t *)record + record->head.length;
    struct call c = {sw, sw->program, &sw->state, now, &record->head, end};
    struct sw_match_spec spec;
    const void *rest;
    if (!sw->program || record->head.object >= sw->program->n_tables)
        return 0;
    struct sw_table *t = &sw->state.tables[record->head.object];
    if (read_match(&c, t->desc, record, &spec, &rest))
        return 0;
    uint32_t position = table_find(t, &spec);
    return position == TABLE_NONE ? 0
                                  : ctl_put_entry(sw, record->head.object, position, out, now);
}

size_t ctl_read_default(struct sw *sw, uint32_t table, void *out, ns_t now)
{
    if (!sw->program || table >= sw->program->n_tables)
        return 0;
    return put_entry(sw, table, sw->state.tables[table].fallback, NULL, out, now);
}

size_t ctl_read_cells(struct sw *sw, uint32_t kind, uint32_t object, uint64_t first, uint64_t n,
                      void *out)
{
    const struct sw_program *p = sw->program;
    const struct sw_array_desc *arrays = !p                      ? NULL
                                         : kind == CTL_COUNTER   ? p->counters
                                         : kind == CTL_METER     ? p->meters
                                         : kind == CTL_REGISTER  ? p->registers
                                                                 : NULL;
    uint32_t count = !p                     ? 0
                     : kind == CTL_COUNTER  ? p->n_counters
                     : kind == CTL_METER    ? p->n_meters
                                            : p->n_registers;
    if (!arrays || object >= count || first > arrays[object].size ||
        n > arrays[object].size - first)
        return 0;
    if (kind == CTL_COUNTER) {
        memcpy(out, sw->state.counters[object] + first, n * sizeof(struct sw_counter));
        return n * sizeof(struct sw_counter);
    }
    if (kind == CTL_REGISTER) {
        struct sw_cells array = state_register(&sw->state, object);
        for (uint64_t i = 0; i < n; i++)
            memcpy((uint8_t *)out + i * array.cell_bytes, sw_cell(&array, (uint32_t)(first + i)),
                   array.cell_bytes);
        return n * array.cell_bytes;
    }
    uint64_t *to = out;
    for (const struct sw_meter *m = sw->state.meters[object] + first; n--; m++) {
        *to++ = m->configured;
        *to++ = m->committed.rate;
        *to++ = m->committed.burst;
        *to++ = m->peak.rate;
        *to++ = m->peak.burst;
    }
    return (size_t)((uint8_t *)to - (uint8_t *)out);
}
