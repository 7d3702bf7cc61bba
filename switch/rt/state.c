/* Making and freeing state. */
#define _GNU_SOURCE
#include "state.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "huge_array.h"

static void *zeroed(size_t n, size_t size) { return calloc(n ? n : 1, size ? size : 1); }

/* Zeros that take no memory before they are written: there are cells for more ports than a switch has,
 * and calloc writes zeros where something else was. */
static void *mapped(size_t size)
{
    if (arena_is_open())
        return zeroed(1, size);
    int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *at = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, how, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static void unmap(void *at, size_t size)
{
    if (arena_holds(at))
        free(at);
    else if (at)
        munmap(at, size ? size : 1);
}

/* Where a counter begins among all of a switch's: a line further each, or cells of the same queue would
 * be at the same place of a cache. */
static size_t counter_at(const struct sw_program *program, uint32_t number)
{
    size_t at = 0;
    for (uint32_t i = 0; i < number; i++)
        at += ((size_t)program->counters[i].size * sizeof(struct sw_counter) + 63) / 64 * 64 + 64;
    return at;
}

static size_t counters_size(const struct sw_program *program)
{
    return counter_at(program, program->n_counters);
}

static void set_default(struct sw_table *t, const struct sw_program *program)
{
    const struct sw_table_desc *desc = t->desc;
    t->fallback->action = desc->default_action;
    if (desc->default_action != SW_NO_ACTION && desc->default_data)
        memcpy(entry_at(t->fallback, desc->data_at), desc->default_data,
               program->actions[desc->default_action].size);
}

void state_note(struct sw_state *state, uint32_t table)
{
    const struct sw_table *t = &state->tables[table];
    bool rests = !t->used && t->fallback->action == t->desc->default_action;
    state->resting[table / 64] &= ~((uint64_t)1 << table % 64);
    state->resting[table / 64] |= (uint64_t)rests << table % 64;
}

bool state_init(struct sw_state *state, const struct sw_program *program, ns_t now)
{
    (void)now;
    memset(state, 0, sizeof *state);
    state->program = program;
    state->tables = huge_array_grow(NULL, 0, (program->n_tables + 1) * sizeof *state->tables);
    state->profiles = zeroed(program->n_profiles, sizeof *state->profiles);
    state->counters = zeroed(program->n_counters, sizeof *state->counters);
    state->meters = zeroed(program->n_meters, sizeof *state->meters);
    state->registers = mapped(program->registers_size);
    state->value_sets = zeroed(program->n_value_sets, sizeof *state->value_sets);
    state->resting = zeroed(program->n_tables / 64 + 1, sizeof *state->resting);
    bool ok = state->tables && state->profiles && state->counters && state->meters &&
              state->registers && state->value_sets && state->resting;
    for (uint32_t i = 0; ok && i < program->n_tables; i++) {
        ok = table_init(&state->tables[i], &program->tables[i]);
        if (!ok)
            break;
        set_default(&state->tables[i], program);
        state_note(state, i);
    }
    for (uint32_t i = 0; ok && i < program->n_profiles; i++)
        profile_init(&state->profiles[i], &program->profiles[i]);
    uint8_t *cells = state->cells = ok ? mapped(counters_size(program)) : NULL;
    ok = cells;
    for (uint32_t i = 0; ok && i < program->n_counters; i++)
        state->counters[i] = (struct sw_counter *)(void *)(cells + counter_at(program, i));
    for (uint32_t i = 0; ok && i < program->n_meters; i++)
        ok = (state->meters[i] = zeroed(program->meters[i].size, sizeof **state->meters));
    if (!ok)
        state_free(state);
    return ok;
}

void state_free(struct sw_state *state)
{
    const struct sw_program *program = state->program;
    if (!program)
        return;
    for (uint32_t i = 0; state->tables && i < program->n_tables; i++)
        table_free(&state->tables[i]);
    for (uint32_t i = 0; state->profiles && i < program->n_profiles; i++)
        profile_free(&state->profiles[i]);
    for (uint32_t i = 0; state->meters && i < program->n_meters; i++)
        free(state->meters[i]);
    for (uint32_t i = 0; state->value_sets && i < program->n_value_sets; i++)
        free(state->value_sets[i].members);
    free(state->tables);
    free(state->profiles);
    free(state->counters);
    free(state->meters);
    unmap(state->registers, program->registers_size);
    unmap(state->cells, counters_size(program));
    free(state->value_sets);
    free(state->resting);
    memset(state, 0, sizeof *state);
}
