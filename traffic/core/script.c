/* One table for the keys of `endpoint`, one for those of `qp`: name, kind, place. */
#include "script.h"

#include "tss.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

enum kind {
    FLAG, DSCP, U8, U16, U32, U64, BITS, PAYLOAD, RECOVERY, CONGESTION, ACKS, HEX_DATA, HEX_CONTROL,
    HEX_PLANES, HEX_HEADERS, HEX_PEER, TRANSPORT, DELIVERY, HEADERS, ENTROPY, OPERATION
};

struct key {
    const char *name;
    enum kind kind;
    size_t place;
};

enum { MAX_RECORDS = (1 << 28) - 1 };

struct head {
    struct ep_config config;
    uint32_t qps, transfers, edges;
};

struct transfer_line {
    uint32_t id, qp;
    uint64_t size, delay;
};

struct collective_line {
    struct inc_message collective;
    enum inc_op op;
    uint32_t job;
    uint64_t delay;
};

#define HEAD(name, kind, field) {name, kind, offsetof(struct head, field)}
#define QP(name, kind, field) {name, kind, offsetof(struct ep_qp_config, field)}
#define TRANSFER(name, kind, field) {name, kind, offsetof(struct transfer_line, field)}

#define JOB(name, kind, field) {name, kind, offsetof(struct inc_job_config, field)}
#define PEER(name, kind, field) {name, kind, offsetof(struct inc_peer_config, field)}
#define COLLECTIVE(name, kind, field) {name, kind, offsetof(struct collective_line, field)}

static const struct key HEAD_KEYS[] = {
    HEAD("qps", U32, qps),
    HEAD("transfers", U32, transfers),
    HEAD("edges", U32, edges),
    HEAD("ports", U8, config.ports),
    HEAD("bonded", FLAG, config.bonded),
    HEAD("overhead-bytes", U32, config.overhead_bytes),
    HEAD("mtu", U32, config.mtu),
    HEAD("ip", U8, config.ip),
    HEAD("payload", PAYLOAD, config.payload),
    HEAD("recovery", RECOVERY, config.recovery),
    HEAD("window", U32, config.window),
    HEAD("ack-every", U32, config.ack_every),
    HEAD("follow-rate", FLAG, config.follow_rate),
    HEAD("by-number", FLAG, config.by_number),
    HEAD("reorder", U64, config.reorder),
    HEAD("multipath", FLAG, config.multipath),
    HEAD("rto", U64, config.rto),
    HEAD("rto-first", U64, config.rto_first),
    HEAD("retry-limit", U32, config.retry_limit),
    HEAD("catch-up", U64, config.catch_up),
    HEAD("int-port", U16, config.int_port),
    HEAD("csig", U8, config.csig),
    HEAD("control-priority", U8, config.control_priority),
    HEAD("acks", ACKS, config.acks),
    HEAD("lossless", U8, config.lossless),
    HEAD("receive-bps", U64, config.rx_buffer.rate),
    HEAD("receive-room", U32, config.rx_buffer.room),
    HEAD("receive-xoff", U32, config.rx_buffer.xoff),
    HEAD("receive-xon", U32, config.rx_buffer.xon),
    HEAD("pause-classes", U8, config.pause_classes),
    HEAD("pause-dscps", BITS, config.pause_dscps),
    HEAD("credit-classes", U8, config.credit.classes),
    HEAD("credit-size", U32, config.credit.size),
    HEAD("credit-least", U32, config.credit.least),
    HEAD("credit-cell", U32, config.credit.cell),
    HEAD("credit-ask-after", U64, config.credit.ask_after),
    HEAD("storm-from", U64, config.storm_from),
    HEAD("storm-until", U64, config.storm_until),
    HEAD("transport", TRANSPORT, config.transport),
    HEAD("delivery", DELIVERY, config.delivery),
    HEAD("security", FLAG, config.security),
    HEAD("headers", HEADERS, config.headers),
    HEAD("entropy", ENTROPY, config.entropy),
    HEAD("entropies", U16, config.entropies),
    HEAD("timestamps", FLAG, config.timestamps),
    HEAD("port-status", FLAG, config.port_status),
    HEAD("reverse-set", FLAG, config.reverse_set),
    HEAD("last-hop-dscp", DSCP, config.last_hop_dscp),
    HEAD("has-trimming", FLAG, config.has_trimming),
    HEAD("hops", U32, config.hops),
    HEAD("seed", U32, config.seed),
    HEAD("base-rtt", U64, config.base_rtt),
    {0},
};

static const struct key QP_KEYS[] = {
    QP("number", U32, number),
    QP("remote", U32, remote),
    QP("psn", U32, first_psn),
    QP("remote-psn", U32, remote_first_psn),
    QP("priority", U8, priority),
    QP("cc", CONGESTION, cc),
    QP("rate", U64, rate),
    QP("base-rtt", U64, base_rtt),
    QP("port", U8, port),
    QP("sdi", U32, sdi),
    QP("planes", HEX_PLANES, planes),
    QP("data", HEX_DATA, data),
    QP("control", HEX_CONTROL, control),
    {0},
};

static const struct key TRANSFER_KEYS[] = {
    TRANSFER("id", U32, id),
    TRANSFER("qp", U32, qp),
    TRANSFER("size", U64, size),
    TRANSFER("delay", U64, delay),
    {0},
};

static const struct key JOB_KEYS[] = {
    JOB("number", U16, number),
    JOB("member", U16, member),
    JOB("members", U16, members),
    JOB("priority", U8, priority),
    JOB("floats", FLAG, floats),
    JOB("slots", U32, slots),
    JOB("rto", U64, rto),
    JOB("tries", U32, tries),
    JOB("headers", HEX_HEADERS, headers),
    {0},
};

static const struct key PEER_KEYS[] = {
    PEER("job", U16, job),
    PEER("member", U16, member),
    PEER("headers", HEX_PEER, headers),
    {0},
};

static const struct key COLLECTIVE_KEYS[] = {
    COLLECTIVE("id", U32, collective.id),
    COLLECTIVE("size", U32, collective.size),
    COLLECTIVE("first", U32, collective.first),
    COLLECTIVE("root", U16, collective.root),
    COLLECTIVE("op", OPERATION, op),
    COLLECTIVE("job", U32, job),
    COLLECTIVE("delay", U64, delay),
    {0},
};

__attribute__((format(printf, 2, 3))) static bool fail(struct script *script, const char *format,
                                                       ...)
{
    va_list words;
    va_start(words, format);
    vsnprintf(script->problem, sizeof script->problem, format, words);
    va_end(words);
    return false;
}

static bool number(const char *text, uint64_t most, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 0);
    return isdigit((unsigned char)*text) && !*end && !errno && *value <= most;
}

static bool word(const char *text, const char *const *words, unsigned *value)
{
    for (*value = 0; words[*value]; ++*value)
        if (!strcmp(text, words[*value]))
            return true;
    return false;
}

static int nibble(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The bytes written in hex, at most `room`; 0 if it is not hex. */
static uint32_t hex(const char *text, uint8_t *bytes, size_t room)
{
    size_t n = strlen(text) / 2;
    if (strlen(text) % 2 || n > room)
        return 0;
    for (size_t i = 0; i < n; i++) {
        int high = nibble(text[2 * i]), low = nibble(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return 0;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return (uint32_t)n;
}

static bool assign_number(enum kind kind, const char *text, void *place)
{
    static const uint64_t MAX[] = {
        [FLAG] = 1, [DSCP] = 63, [U8] = UINT8_MAX, [U16] = UINT16_MAX, [U32] = UINT32_MAX,
        [U64] = (1ull << 62) - 1, /* two of them fit into 64 bits */
        [BITS] = UINT64_MAX,
    };
    static const size_t BYTES[] = {
        [FLAG] = 1, [DSCP] = 1, [U8] = 1, [U16] = 2, [U32] = 4, [U64] = 8, [BITS] = 8,
    };
    uint64_t value;
    if (!number(text, MAX[kind], &value))
        return false;
    memcpy(place, &value, BYTES[kind]); /* little-endian, as all of the core */
    return true;
}

static bool assign_word(const char *text, const char *const *words, void *place)
{
    unsigned index;
    if (!word(text, words, &index))
        return false;
    memcpy(place, &index, sizeof index);
    return true;
}

static bool assign_cc(const char *text, uint8_t *place)
{
    *place = (uint8_t)cc_named(text);
    return *place < CC_COUNT;
}

static bool assign(const struct key *key, const char *text, void *record)
{
    static const char *const PAYLOADS[] = {"pattern", "none", NULL};
    static const char *const RECOVERIES[] = {"go-back-0", "go-back-n", "selective", NULL};
    static const char *const CLASSES[] = {"data", "control", "lossless", NULL};
    static const char *const TRANSPORTS[] = {"roce", "uet", "mrc", "sue", NULL};
    static const char *const DELIVERIES[] = {"rud", "rod", "rudi", "uud", NULL};
    static const char *const SEMANTICS[] = {"standard", "medium", "small", NULL};
    static const char *const ENTROPIES[] = {"oblivious", "bitmap", "reps", "single", "mrc", NULL};
    static const char *const OPERATIONS[] = {"all-reduce", "reduce-scatter", "all-gather",
                                             "broadcast", "barrier", NULL};
    void *place = (char *)record + key->place;

    switch (key->kind) {
    case FLAG:
    case DSCP:
    case U8:
    case U16:
    case U32:
    case U64:
    case BITS:
        return assign_number(key->kind, text, place);
    case PAYLOAD:
        return assign_word(text, PAYLOADS, place);
    case RECOVERY:
        return assign_word(text, RECOVERIES, place);
    case ACKS:
        return assign_word(text, CLASSES, place);
    case CONGESTION:
        return assign_cc(text, place);
    case TRANSPORT:
        return assign_word(text, TRANSPORTS, place);
    case DELIVERY:
        return assign_word(text, DELIVERIES, place);
    case HEADERS:
        return assign_word(text, SEMANTICS, place);
    case ENTROPY:
        return assign_word(text, ENTROPIES, place);
    case OPERATION:
        return assign_word(text, OPERATIONS, place);
    case HEX_HEADERS:
        return (((struct inc_job_config *)record)->header_bytes = hex(text, place,
                                                                      INC_HEADERS_MAX)) != 0;
    case HEX_PEER:
        return (((struct inc_peer_config *)record)->header_bytes = hex(text, place,
                                                                       INC_HEADERS_MAX)) != 0;
    case HEX_DATA:
        return (((struct ep_qp_config *)record)->data_bytes = hex(text, place,
                                                                  EP_DATA_HEADER)) != 0;
    case HEX_PLANES:
        return (((struct ep_qp_config *)record)->planes_bytes =
                    hex(text, place, sizeof ((struct ep_qp_config *)record)->planes)) != 0;
    case HEX_CONTROL:
        return (((struct ep_qp_config *)record)->control_bytes = hex(text, place,
                                                                     WIRE_HEADERS_MAX)) != 0;
    }
    return false;
}

/* Read the `key=value` words that are left in `*rest` into a record; what is no key of it may be a
 * parameter of a congestion control, where `config` is given. */
static bool read_keys(struct script *script, char **rest, const struct key *keys, void *record,
                      struct ep_config *config)
{
    for (char *item; (item = strtok_r(NULL, " \n", rest));) {
        char *value = strchr(item, '=');
        if (!value)
            return fail(script, "'%.60s' is not key=value", item);
        *value++ = 0;
        const struct key *key = keys;
        while (key->name && strcmp(key->name, item))
            key++;
        if (!key->name && (!config || !cc_has(item)))
            return fail(script, "there is no key '%.60s'", item);
        if (!key->name && cc_assign(config->cc, item, value, config->link_bps))
            continue;
        if (!key->name)
            return fail(script, "'%.60s' is no value for %.60s", value, item);
        if (!assign(key, value, record))
            return fail(script, "'%.60s' is no value for %s", value, key->name);
    }
    return true;
}

static bool read_endpoint(struct script *script, char **rest)
{
    struct head head = {0};
    if (script->plan)
        return fail(script, "there is an endpoint already");
    char *link = strtok_r(NULL, " \n", rest);
    uint64_t bps;
    if (!link || strncmp(link, "link-bps=", 9) || !number(link + 9, INT64_MAX, &bps))
        return fail(script, "an endpoint begins with link-bps=N");
    ep_config_default(&head.config, bps);
    if (!read_keys(script, rest, HEAD_KEYS, &head, &head.config))
        return false;
    const char *problem = ep_config_problem(&head.config);
    if (problem)
        return fail(script, "%s", problem);
    if (head.qps > PSN_MASK || head.transfers > MAX_RECORDS || head.edges > MAX_RECORDS)
        return fail(script,
                    "a host has fewer than 2^24 queue pairs and 2^28 transfers and dependencies");
    script->plan = plan_new(&head.config, &script->port, head.qps, head.transfers, head.edges);
    return script->plan || fail(script, "memory is short for %u queue pairs and %u transfers",
                                head.qps, head.transfers);
}

static bool read_qp(struct script *script, char **rest)
{
    struct ep_qp_config config = {.priority = 3};
    const char *problem;
    if (!read_keys(script, rest, QP_KEYS, &config, NULL))
        return false;
    return ep_add_qp(plan_endpoint(script->plan), &config, &problem) ||
           fail(script, "queue pair %u: %s", config.number, problem);
}

static bool read_job(struct script *script, char **rest)
{
    struct inc_job_config config = {.priority = 3};
    const char *problem;
    if (!read_keys(script, rest, JOB_KEYS, &config, NULL))
        return false;
    return ep_add_job(plan_endpoint(script->plan), &config, &problem) ||
           fail(script, "job %u: %s", config.number, problem);
}

static bool read_peer(struct script *script, char **rest)
{
    struct inc_peer_config config = {0};
    if (!read_keys(script, rest, PEER_KEYS, &config, NULL))
        return false;
    const char *problem = ep_add_peer(plan_endpoint(script->plan), &config);
    return !problem || fail(script, "peer %u of job %u: %s", config.member, config.job, problem);
}

static bool read_collective(struct script *script, char **rest)
{
    struct collective_line line = {0};
    if (!read_keys(script, rest, COLLECTIVE_KEYS, &line, NULL))
        return false;
    line.collective.op = (uint8_t)line.op;
    line.collective.job = ep_find_job(plan_endpoint(script->plan), line.job);
    if (!line.collective.job)
        return fail(script, "collective %u: there is no job %u", line.collective.id, line.job);
    const char *problem = plan_add_collective(script->plan, &line.collective, line.delay);
    return !problem || fail(script, "collective %u: %s", line.collective.id, problem);
}

static bool read_transfer(struct script *script, char **rest, enum transfer_kind kind)
{
    struct transfer_line line = {0};
    if (!read_keys(script, rest, TRANSFER_KEYS, &line, NULL))
        return false;
    struct qp *qp = ep_find_qp(plan_endpoint(script->plan), line.qp);
    if (!qp && kind != TRANSFER_COMPUTE)
        return fail(script, "transfer %u: there is no queue pair %u", line.id, line.qp);
    const char *problem = plan_add(script->plan, kind, line.id, qp, line.size, line.delay);
    return !problem || fail(script, "transfer %u: %s", line.id, problem);
}

static bool read_after(struct script *script, char **rest)
{
    char *first = strtok_r(NULL, " \n", rest);
    uint64_t id, earlier;
    if (!first || !number(first, UINT32_MAX, &id))
        return fail(script, "'after' begins with a transfer's id");
    for (char *item; (item = strtok_r(NULL, " \n", rest));) {
        if (!number(item, UINT32_MAX, &earlier))
            return fail(script, "'%.60s' is not a transfer's id", item);
        const char *problem = plan_after(script->plan, (uint32_t)id, (uint32_t)earlier);
        if (problem)
            return fail(script, "%u after %u: %s", (unsigned)id, (unsigned)earlier, problem);
    }
    return true;
}

static bool read_list(struct script *script, const char *line)
{
    unsigned queue_pair, entropy;
    char digits[2 * WIRE_IPV6_ADDRESS + 1];
    uint8_t list[WIRE_IPV6_ADDRESS];
    if (sscanf(line, "%u %u %32s", &queue_pair, &entropy, digits) != 3 ||
        hex(digits, list, sizeof list) != sizeof list)
        return fail(script, "'list' needs a queue pair, an entropy and an IPv6 address in hex");
    struct ep *ep = plan_endpoint(script->plan);
    struct qp *qp = ep_find_qp(ep, queue_pair);
    const char *problem = qp ? ep_steer(ep, qp, entropy, list) : "it is not there";
    return !problem || fail(script, "list: queue pair %u: %s", queue_pair, problem);
}

bool script_key(struct script *script, const char *line)
{
    struct ep *ep = script->plan ? plan_endpoint(script->plan) : NULL;
    unsigned sdi, an;
    char digits[2 * TSS_KEY + 1] = "";
    uint8_t key[TSS_KEY];
    const char *problem = "the endpoint comes first";
    if (sscanf(line, "use %u %u", &sdi, &an) == 2)
        problem = ep ? tss_use_key(ep, sdi, an) : problem;
    else if (sscanf(line, "key %u %u %64s", &sdi, &an, digits) != 3 ||
             hex(digits, key, sizeof key) != sizeof key)
        problem = "it says 'key' with a domain, 0 or 1, and 32 bytes in hex, or 'use' without these";
    else if (ep)
        problem = tss_set_key(ep, sdi, an, key);
    return !problem || fail(script, "key: %s", problem);
}

bool script_line(struct script *script, char *line)
{
    if (script_is_key(line))
        return script_key(script, line);
    char *rest, *verb = strtok_r(line, " \n", &rest);
    if (!verb)
        return true;
    if (!strcmp(verb, "endpoint"))
        return read_endpoint(script, &rest);
    if (!script->plan)
        return fail(script, "the endpoint comes first, before '%.60s'", verb);
    if (!strcmp(verb, "qp"))
        return read_qp(script, &rest);
    if (!strcmp(verb, "list"))
        return read_list(script, rest);
    if (!strcmp(verb, "send"))
        return read_transfer(script, &rest, TRANSFER_SEND);
    if (!strcmp(verb, "receive"))
        return read_transfer(script, &rest, TRANSFER_RECEIVE);
    if (!strcmp(verb, "compute"))
        return read_transfer(script, &rest, TRANSFER_COMPUTE);
    if (!strcmp(verb, "job"))
        return read_job(script, &rest);
    if (!strcmp(verb, "peer"))
        return read_peer(script, &rest);
    if (!strcmp(verb, "collective"))
        return read_collective(script, &rest);
    if (!strcmp(verb, "after"))
        return read_after(script, &rest);
    return fail(script, "there is no line '%.60s'", verb);
}

bool script_denial(struct script *script, const char *line, ns_t now)
{
    enum { DIGITS = 64, OF_A_WORD = 16 };
    _Static_assert(DIGITS * 4 == ENTROPY_MAX, "as many as are read");
    unsigned queue_pair;
    char digits[DIGITS + 1];
    uint64_t denied[DIGITS / OF_A_WORD] = {0};
    if (sscanf(line, "deny %u %64[0-9a-f]", &queue_pair, digits) != 2)
        return fail(script, "'deny' needs a queue pair and its entropies, bits of a number in hex");
    size_t n = strlen(digits);
    for (size_t i = 0; i < n; i++)
        denied[i / OF_A_WORD] |= (uint64_t)nibble(digits[n - 1 - i]) << i % OF_A_WORD * 4;
    struct qp *qp = ep_find_qp(plan_endpoint(script->plan), queue_pair);
    if (qp)
        ep_deny(plan_endpoint(script->plan), qp, denied, now);
    return true;
}

static void print_time(FILE *file, ns_t t)
{
    if (t == NS_NEVER)
        fprintf(file, " -");
    else
        fprintf(file, " %llu", (unsigned long long)t);
}

/* Where a message stands that is not through: what its queue pair waits for. Of those expected only
 * such as were asked for once more, or that cannot come. */
static void report_stand(const struct transfer *transfer, FILE *file, ns_t now)
{
    struct qp_state state;
    const struct qp *qp = transfer->message.qp;
    bool sends = transfer->kind == TRANSFER_SEND;
    if (transfer->state == TRANSFER_DONE || transfer->kind >= TRANSFER_COMPUTE ||
        (sends && transfer->state == TRANSFER_WAITING))
        return;
    qp_state(qp, now, &state);
    if (!sends && !state.has_asked && !qp_error(qp))
        return;
    fprintf(file, "stand %u %s %s %llu %llu", transfer->message.id, ep_error_name(qp_error(qp)),
            !sends ? "asked" : state.has_turn ? "sends" : "waits",
            (unsigned long long)state.in_flight, (unsigned long long)state.waiting);
    print_time(file, state.timeout_at);
    print_time(file, transfer_end(transfer));
    fprintf(file, "\n");
}

void script_report(struct plan *plan, FILE *file, ns_t now)
{
    static const char *const KINDS[] = {"send", "receive", "compute", "collective"};
    static const char *const STATES[] = {"waiting", "started", "done", "failed"};
    const struct ep_counters *counters = ep_counters(plan_endpoint(plan), now);
    uint32_t count;
    const struct transfer *transfer = plan_transfers(plan, &count);

    for (const struct transfer *end = transfer + count; transfer < end; transfer++) {
        fprintf(file, "transfer %u %s %s", transfer->message.id, KINDS[transfer->kind],
                STATES[transfer->state]);
        print_time(file, transfer->start);
        print_time(file, transfer_end(transfer));
        fprintf(file, "\n");
        report_stand(transfer, file, now);
    }
#define COUNTER(name, about) \
    fprintf(file, "counter " #name " %llu\n", (unsigned long long)counters->name);
    EP_COUNTERS(COUNTER)
#undef COUNTER
    uint8_t ports = ep_get_config(plan_endpoint(plan))->ports;
    for (uint8_t port = 0; ports > 1 && port < ports; port++) {
        struct ep_port_counters its = ep_port_counters(plan_endpoint(plan), port);
#define COUNTER(name) \
    fprintf(file, "counter port%u_" #name " %llu\n", port, (unsigned long long)its.name);
        EP_PORT_COUNTERS(COUNTER)
#undef COUNTER
        for (int priority = 0; priority < 8; priority++)
            fprintf(file, "counter port%u_paused_%d_ns %llu\n", port, priority,
                    (unsigned long long)its.paused_ns[priority]);
    }
    const struct ep_way_note *note = ep_way_notes(plan_endpoint(plan), &count);
    for (const struct ep_way_note *end = note + count; note < end; note++)
        fprintf(file, "way %llu %u %u %s\n", (unsigned long long)note->at, note->queue_pair,
                note->entropy, way_state_name(note->state));
    for (int priority = 0; priority < 8; priority++)
        if (counters->paused_ns[priority])
            fprintf(file, "paused %d %llu\n", priority,
                    (unsigned long long)counters->paused_ns[priority]);
}
