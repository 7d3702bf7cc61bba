/* The registry of congestion controls, and their parameters by name. */
#include "cc.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <stdlib.h>

#define CC(name, users, hears, about) extern const struct cc_ops cc_##name;
#include "registry.h"
#undef CC

const struct cc_entry CC_REGISTRY[CC_COUNT] = {
    {"none", CC_ROCE | CC_UET | CC_MRC | CC_SUE, CC_MARKS, NULL},
#define CC(name, users, hears, about) {#name, users, hears, &cc_##name},
#include "registry.h"
#undef CC
};

unsigned cc_named(const char *name)
{
    unsigned found = 0;
    while (found < CC_COUNT && strcmp(CC_REGISTRY[found].name, name))
        found++;
    return found;
}

static bool is_real(const struct cc_parameter *parameter)
{
    return parameter->kind == CC_IS_REAL || parameter->kind == CC_IS_SHARE;
}

static void put(struct cc_values *values, const struct cc_parameter *parameter, uint64_t number,
                double real)
{
    void *place = (char *)values + parameter->place;
    if (is_real(parameter))
        memcpy(place, &real, sizeof real);
    else
        memcpy(place, &number, sizeof number);
}

void cc_usual(struct cc_values *values, unsigned name, bps_t line)
{
    const struct cc_ops *ops = CC_REGISTRY[name].ops;
    *values = (struct cc_values){0};
    for (size_t i = 0; ops && i < ops->parameter_count; i++)
        put(values, &ops->parameters[i], (uint64_t)ops->parameters[i].usual, ops->parameters[i].usual);
    if (ops && ops->usual)
        ops->usual(values, line);
}

/* The how manieth of words between blanks; -1: none. */
static int word_of(const char *words, const char *text)
{
    size_t length = strlen(text);
    for (int at = 0; *words; at++) {
        size_t n = strcspn(words, " ");
        if (n == length && !strncmp(words, text, n))
            return at;
        words += n + (words[n] == ' ');
    }
    return -1;
}

static bool read(const struct cc_parameter *parameter, const char *text, uint64_t *number, double *real)
{
    char *end;
    *number = 0, *real = 0;
    if (parameter->kind == CC_IS_WORD) {
        int word = word_of(parameter->words, text);
        *number = (uint64_t)word;
        return word >= 0;
    }
    if (parameter->kind == CC_IS_FLAG) {
        *number = !strcmp(text, "true");
        return *number || !strcmp(text, "false");
    }
    if (parameter->kind == CC_IS_FILE)
        return (*number = (uint64_t)(uintptr_t)pcm_load(text));
    if (is_real(parameter)) {
        *real = strtod(text, &end);
        bool is_above = parameter->kind == CC_IS_REAL || *real > parameter->least;
        return end != text && !*end && *real >= parameter->least && *real <= parameter->most && is_above;
    }
    errno = 0;
    *number = strtoull(text, &end, 10);
    return isdigit((unsigned char)*text) && !*end && !errno && *number <= INT64_MAX &&
           (double)*number >= parameter->least && (double)*number <= parameter->most;
}

/* Whether a key is that of a parameter, whose name has dashes there. */
static bool is_called(const char *name, const char *key)
{
    for (; *name && (*key == *name || (*name == '_' && *key == '-')); name++)
        key++;
    return !*name && !*key;
}

/* The parameter of a key, and whose it is; NULL if there is none. */
static const struct cc_parameter *parameter_of(const char *key, unsigned *name)
{
    for (*name = 1; *name < CC_COUNT; ++*name) {
        const struct cc_entry *entry = &CC_REGISTRY[*name];
        size_t length = strlen(entry->name);
        if (strncmp(key, entry->name, length) || key[length] != '-')
            continue;
        for (size_t i = 0; i < entry->ops->parameter_count; i++)
            if (is_called(entry->ops->parameters[i].name, key + length + 1))
                return &entry->ops->parameters[i];
    }
    return NULL;
}

bool cc_has(const char *key)
{
    unsigned name;
    return parameter_of(key, &name);
}

bool cc_assign(struct cc_values values[CC_COUNT], const char *key, const char *text, bps_t line)
{
    unsigned name;
    uint64_t number;
    double real;
    const struct cc_parameter *parameter = parameter_of(key, &name);
    if (!parameter || !read(parameter, text, &number, &real))
        return false;
    const struct cc_ops *ops = CC_REGISTRY[name].ops;
    put(&values[name], parameter, number, real);
    if (parameter == ops->parameters && parameter->kind == CC_IS_WORD && ops->usual)
        ops->usual(&values[name], line);
    return true;
}

struct cc *cc_new(unsigned name, const struct cc_values *values, const struct cc_link *link)
{
    const struct cc_ops *ops = CC_REGISTRY[name].ops;
    struct cc *cc = calloc(1, sizeof *cc + ops->bytes);
    if (!cc)
        return NULL;
    cc->ops = ops;
    cc->parameters = values;
    cc->link = *link;
    cc->window = cc->most = DBL_MAX;
    cc->ask_every = UINT32_MAX;
    ops->begin(cc);
    return cc;
}

struct cc *cc_copy(const struct cc *cc)
{
    size_t bytes = sizeof *cc + cc->ops->bytes;
    struct cc *copy = malloc(bytes);
    return copy ? memcpy(copy, cc, bytes) : NULL;
}
