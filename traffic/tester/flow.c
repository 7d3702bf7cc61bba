/* What a flow is told to be, and its frames. */
#include <stdio.h>
#include <stdlib.h>

#include "../core/icrc.h"
#include "tester.h"

/* Reading */

static const char NO_ROOM[] = "memory is short";

/* One more of what is kept in an array; NULL: there is no room. */
static void *one_more(void **array, uint32_t *count, size_t size)
{
    void *larger = realloc(*array, (*count + 1) * size);
    if (!larger)
        return NULL;
    *array = larger;
    uint8_t *fresh = (uint8_t *)larger + (*count)++ * size;
    memset(fresh, 0, size);
    return fresh;
}

static int nibble(char sign)
{
    if (sign >= '0' && sign <= '9')
        return sign - '0';
    return sign >= 'a' && sign <= 'f' ? sign - 'a' + 10 : -1;
}

static wide_t wide_of(const char *text)
{
    wide_t value = 0;
    for (; nibble(*text) >= 0; text++)
        value = value << 4 | (unsigned)nibble(*text);
    return value;
}

static const char *read_head(struct flow *flow, char *rest)
{
    int at = 0;
    if (sscanf(rest, "%u %u %n", &flow->class, &flow->mark, &at) != 2 || flow->class >= CLASSES)
        return "a flow is: CLASS MARK HEX";
    size_t digits = strlen(rest + at);
    if (digits % 2 || digits / 2 > FRAME_MAX)
        return "a flow's template is no row of bytes";
    flow->head_bytes = (uint32_t)(digits / 2);
    flow->head = malloc(flow->head_bytes + 1);
    for (uint32_t i = 0; flow->head && i < flow->head_bytes; i++)
        flow->head[i] = (uint8_t)(nibble(rest[at + 2 * i]) << 4 | nibble(rest[at + 2 * i + 1]));
    return flow->head ? NULL : NO_ROOM;
}

static const char *read_values(struct field *field, char *list)
{
    uint64_t count = 1;
    for (const char *sign = list; *sign; sign++)
        count += *sign == ',';
    field->values = calloc(count, sizeof *field->values);
    if (!field->values)
        return NO_ROOM;
    for (char *one; (one = strsep(&list, ","));)
        field->values[field->count++] = wide_of(one);
    return NULL;
}

static const char *read_field(struct flow *flow, char *rest)
{
    char kind[8], start[40], step[40];
    int at = 0;
    struct field *field = one_more((void **)&flow->fields, &flow->n_fields, sizeof *field);
    if (!field)
        return NO_ROOM;
    if (sscanf(rest, "%u %u %7s %n", &field->bit, &field->width, kind, &at) != 3 ||
        !field->width || field->width > 128 || field->bit + field->width > 8 * flow->head_bytes)
        return "a field is: BIT WIDTH list|step|random ...";
    if (!strcmp(kind, "list"))
        return read_values(field, rest + at);
    unsigned long long count;
    if (sscanf(rest + at, "%39s %39s %llu", start, step, &count) != 3 || !count)
        return "a field's steps are: START STEP COUNT";
    field->start = wide_of(start);
    field->step = wide_of(step);
    field->count = count;
    field->is_random = !strcmp(kind, "random");
    return NULL;
}

static const char *read_mending(struct flow *flow, char *rest)
{
    static const char *const kinds[] = {"length", "mark", "ipv4", "udp", "plain", "icrc", "fcs"};
    char kind[8];
    int bad = 0;
    struct mending *one = one_more((void **)&flow->mendings, &flow->n_mendings, sizeof *one);
    if (!one)
        return NO_ROOM;
    if (sscanf(rest, "%7s %u %u %u %u %d %u", kind, &one->at, &one->from, &one->ip, &one->more, &bad,
               &one->tail) != 7)
        return "what is to be mended is: KIND AT FROM IP MORE BAD TAIL";
    one->is_bad = bad;
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i], kind)) {
            one->kind = (enum mend)i;
            return NULL;
        }
    return "there is nothing of this kind to mend";
}

static const char *read_sizes(struct flow *flow, char *rest)
{
    char kind[12];
    int at = 0;
    struct sizes *sizes = &flow->sizes;
    if (sscanf(rest, "%11s %n", kind, &at) != 1)
        return "sizes are of a kind";
    if (sscanf(rest + at, "%u %u %u", &sizes->first, &sizes->last, &sizes->step) == 3 && sizes->step &&
        sizes->first <= sizes->last && sizes->last <= FRAME_MAX && strcmp(kind, "weighted")) {
        sizes->kind = !strcmp(kind, "steps")    ? SIZE_STEPS
                      : !strcmp(kind, "random") ? SIZE_RANDOM
                                                : SIZE_FIXED;
        return NULL;
    }
    sizes->kind = SIZE_WEIGHTED;
    double sum = 0, weight;
    int read;
    uint32_t size, room = 0;
    for (rest += at; sscanf(rest, "%u:%lf %n", &size, &weight, &read) == 2; rest += read) {
        uint32_t *each = realloc(sizes->each, (room + 1) * sizeof *each);
        sizes->each = each ? each : sizes->each;
        double *up_to = realloc(sizes->up_to, (room + 1) * sizeof *up_to);
        sizes->up_to = up_to ? up_to : sizes->up_to;
        if (!each || !up_to)
            return NO_ROOM;
        sizes->each[room] = size;
        sizes->up_to[room++] = sum += weight;
        if (size > FRAME_MAX)
            return "frames of this size do not exist";
    }
    sizes->count = room;
    return room && sum > 0 ? NULL : "sizes with weights are: SIZE:WEIGHT ...";
}

static const char *read_pace(struct flow *flow, char *rest)
{
    bool is_read = sscanf(rest, "%lf %lf %u %lf %lf", &flow->interval, &flow->bps, &flow->counted,
                          &flow->least_gap, &flow->delay) == 5;
    return is_read ? NULL : "a pace is: INTERVAL BPS COUNTED GAP DELAY";
}

static const char *read_end(struct flow *flow, char *rest)
{
    unsigned long long packets, bursts;
    int has_bursts;
    if (sscanf(rest, "%llu %d %llu %lf %lf", &packets, &has_bursts, &bursts, &flow->pause,
               &flow->lasts) != 5)
        return "an end is: PACKETS IN-BURSTS BURSTS PAUSE LASTS";
    flow->packets = packets;
    flow->has_bursts = has_bursts;
    flow->bursts = bursts;
    return NULL;
}

void flow_forget(struct flow *flow)
{
    if (!flow)
        return;
    for (uint32_t i = 0; i < flow->n_fields; i++)
        free(flow->fields[i].values);
    free(flow->fields);
    free(flow->mendings);
    free(flow->sizes.each);
    free(flow->sizes.up_to);
    free(flow->head);
    free(flow);
}

/* A line about a flow, whose number it begins with. */
const char *flow_tell(struct port *port, char *word, char *rest)
{
    unsigned id;
    int at = 0;
    if (sscanf(rest, "%u %n", &id, &at) != 1 || id >= FLOWS_MAX)
        return "there is no flow of this number";
    if (!strcmp(word, "flow")) {
        flow_forget(port->flows[id]);
        port->flows[id] = calloc(1, sizeof **port->flows);
        if (!port->flows[id])
            return NO_ROOM;
        port->n_flows = port->n_flows > id ? port->n_flows : id + 1;
        return read_head(port->flows[id], rest + at);
    }
    struct flow *flow = port->flows[id];
    if (!flow)
        return "no flow of this number was told of";
    if (!strcmp(word, "field"))
        return read_field(flow, rest + at);
    if (!strcmp(word, "mend"))
        return read_mending(flow, rest + at);
    if (!strcmp(word, "sizes")) {
        free(flow->sizes.each);
        free(flow->sizes.up_to);
        flow->sizes = (struct sizes){0};
        return read_sizes(flow, rest + at);
    }
    if (!strcmp(word, "pace"))
        return read_pace(flow, rest + at);
    return !strcmp(word, "end") ? read_end(flow, rest + at) : "nobody knows this word";
}

/* Making */

static uint64_t drawn(uint64_t number, uint64_t salt)
{
    uint64_t z = number * 0x9e3779b97f4a7c15u + salt * 0xd1342543de82ef95u + 0x2545f4914f6cdd1du;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t flow_size(const struct flow *flow, uint64_t number)
{
    const struct sizes *sizes = &flow->sizes;
    uint32_t span = sizes->last - sizes->first;
    switch (sizes->kind) {
    case SIZE_STEPS:
        return sizes->first + (uint32_t)(number % (span / sizes->step + 1)) * sizes->step;
    case SIZE_RANDOM:
        return sizes->first + (uint32_t)(drawn(number, 1) % (span + 1ull));
    case SIZE_WEIGHTED: {
        double at = (double)(drawn(number, 1) >> 11) * 0x1p-53 * sizes->up_to[sizes->count - 1];
        uint32_t i = 0;
        while (i + 1 < sizes->count && sizes->up_to[i] <= at)
            i++;
        return sizes->each[i];
    }
    default:
        return sizes->first;
    }
}

static void put_bits(uint8_t *frame, uint32_t bit, uint32_t width, wide_t value)
{
    for (uint32_t end = bit + width; width;) {
        uint32_t low = 7 - (end - 1) % 8, room = 8 - low, take = width < room ? width : room;
        uint8_t mask = (uint8_t)(((1u << take) - 1) << low), *byte = frame + (end - 1) / 8;
        *byte = (uint8_t)((*byte & ~mask) | ((uint8_t)(value << low) & mask));
        value >>= take;
        end -= take;
        width -= take;
    }
}

static void set_field(uint8_t *frame, const struct field *field, uint64_t number)
{
    uint64_t at = number % field->count;
    wide_t value;
    if (field->values)
        value = field->values[at];
    else if (field->is_random)
        value = field->start + drawn(number, field->bit + 2ull) % field->count;
    else
        value = field->start + field->step * at;
    put_bits(frame, field->bit, field->width, value);
}

static uint32_t sum_of(const uint8_t *p, uint32_t n, uint32_t sum)
{
    uint64_t all = sum;
    for (; n > 1; n -= 2, p += 2)
        all += be16_load(p);
    all += n ? (uint32_t)*p << 8 : 0;
    while (all >> 16)
        all = (all & 0xffff) + (all >> 16);
    return (uint32_t)all;
}

static uint16_t layer4_sum(const uint8_t *frame, uint32_t length, const struct mending *one)
{
    const uint8_t *ip = frame + one->ip;
    uint32_t size = length - one->tail - one->from;
    uint32_t sum = sum_of(ip + ip_source_at(ip), 2 * ip_address_bytes(ip), one->more + size);
    uint16_t found = (uint16_t)~sum_of(frame + one->from, size, sum);
    return found || one->more != IP_UDP ? found : 0xffff;
}

static void put_crc(uint8_t *at, uint32_t crc)
{
    for (unsigned byte = 0; byte < 4; byte++)
        at[byte] = (uint8_t)(crc >> (8 * byte));
}

static void mark(const struct flow *flow, uint8_t *frame, uint32_t length, uint64_t number,
                 unsigned id, ns_t leaves, uint32_t trailer)
{
    uint8_t *at = frame + length - trailer - flow->mark;
    be16_store(at, flow->mark == MARK_LONG ? MARK_LONG_MAGIC : MARK_SHORT_MAGIC);
    be16_store(at + 2, (uint16_t)(flow->run * FLOWS_MAX + id));
    if (flow->mark == MARK_SHORT) {
        be16_store(at + 4, (uint16_t)number);
        return;
    }
    be32_store(at + 4, (uint32_t)number);
    be64_store(at + 8, leaves);
}

/* Frame `number`, whose first bit leaves then. */
void flow_frame(const struct flow *flow, uint8_t *frame, uint32_t length, uint64_t number,
                unsigned id, ns_t leaves)
{
    memcpy(frame, flow->head, flow->head_bytes);
    memset(frame + flow->head_bytes, 0, length - flow->head_bytes);
    for (uint32_t i = 0; i < flow->n_fields; i++)
        set_field(frame, &flow->fields[i], number);
    for (uint32_t i = 0; i < flow->n_mendings; i++) {
        const struct mending *one = &flow->mendings[i];
        uint16_t sum = 0;
        switch (one->kind) {
        case MEND_LENGTH:
            be16_store(frame + one->at, (uint16_t)(length - one->more));
            continue;
        case MEND_MARK:
            mark(flow, frame, length, number, id, leaves, one->tail);
            continue;
        case MEND_ICRC: {
            const uint8_t *ip = frame + one->ip;
            uint32_t end = length - one->tail - WIRE_ICRC;
            put_crc(frame + end, icrc_of(ip, frame + one->from, end - one->from, ip_length(ip),
                                         be16_load(frame + one->from - WIRE_UDP + 2)));
            continue;
        }
        case MEND_FCS: {
            uint32_t end = length - one->tail;
            put_crc(frame + end, crc32_more(0, frame + one->from, end - one->from));
            continue;
        }
        case MEND_IPV4:
            be16_store(frame + one->at, 0);
            sum = (uint16_t)~sum_of(frame + one->from, WIRE_IPV4, 0);
            break;
        case MEND_UDP:
            be16_store(frame + one->at, 0);
            sum = layer4_sum(frame, length, one);
            break;
        case MEND_PLAIN:
            be16_store(frame + one->at, 0);
            sum = (uint16_t)~sum_of(frame + one->from, length - one->tail - one->from, 0);
            break;
        }
        be16_store(frame + one->at, one->is_bad ? (uint16_t)(sum ^ 0x5555) : sum);
    }
}

/* From a frame's beginning to the next one's. */
double flow_interval(const struct flow *flow, const struct port *port, uint32_t length)
{
    double wanted = flow->interval;
    if (flow->bps > 0)
        wanted = (length + flow->counted) * 8e9 / flow->bps;
    double least = (length + port->overhead) * 8e9 * (double)port->dilation / (double)port->bps +
                   flow->least_gap;
    return wanted > least ? wanted : least;
}
