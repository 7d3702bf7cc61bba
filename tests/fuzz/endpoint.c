/* Frames from anybody into an adapter, a fuzzer's input after another; each meets a new adapter,
 * made of the lines that `fuzz_add` was given. */
#include "records.h"
#include "icrc.h"
#include "script.h"
#include "uet_wire.h"

enum { PLANS_MAX = 16, TURNS_MAX = 20000, PORTS_MAX = 8 };

static char *plans[PLANS_MAX];
static unsigned count;

/* What an adapter sends by: its ports, each of which has its own time. */
struct link {
    ns_t last_at[PORTS_MAX];
};

static bool transmit(void *ctx, const uint8_t *frame, uint32_t stored, uint32_t wire,
                     uint8_t port, uint8_t priority, ns_t at)
{
    struct link *link = ctx;
    volatile uint8_t all = priority ^ port;
    for (uint32_t i = 0; i < stored; i++)
        all = (uint8_t)(all ^ frame[i]);
    if (port >= PORTS_MAX || stored > wire || at < link->last_at[port])
        abort(); /* back in time: against its contract */
    link->last_at[port] = at;
    return true;
}

/* Another adapter, as lines of script.h. */
void fuzz_add(const char *lines) { plans[count++ % PLANS_MAX] = strdup(lines); }

static struct plan *made(const char *lines, struct link *link)
{
    struct script script = {.port = {.ctx = link, .transmit = transmit}};
    char *copy = strdup(lines);
    for (char *rest = copy, *line; (line = strsep(&rest, "\n"));) {
        if (*line && !script_line(&script, line)) {
            fprintf(stderr, "%s\n", script.problem);
            abort();
        }
    }
    free(copy);
    plan_start(script.plan, 1000);
    return script.plan;
}

static void put_right(uint8_t *frame, size_t length)
{
    enum { ICRC = 4 };
    if (length < WIRE_HEADERS_MAX - WIRE_IPV6 + WIRE_IPV4)
        return;
    const uint8_t *ip = frame + WIRE_ETHERNET, *udp = ip + ip_bytes(ip), *bth = udp + WIRE_UDP;
    size_t before = (size_t)(bth - frame);
    if (length < before + WIRE_BTH + ICRC)
        return;
    size_t body = length - before - ICRC;
    uint32_t crc = icrc_of(ip, bth, body, ip_length(ip), be16_load(udp + 2));
    for (int i = 0; i < ICRC; i++)
        frame[length - ICRC + (size_t)i] = (uint8_t)(crc >> 8 * i);
}

static ns_t settle(struct plan *plan, ns_t now, ns_t until)
{
    for (unsigned turns = 0; turns < TURNS_MAX; turns++) {
        ns_t wake = plan_service(plan, now);
        if (wake <= now)
            abort(); /* it would turn for ever */
        if (wake > until)
            break;
        now = wake;
    }
    return until;
}

int fuzz(const uint8_t *data, size_t size)
{
    struct record record;
    struct link link = {0};
    if (!size || !count)
        return 0;
    struct plan *plan = made(plans[*data++ % count], &link);
    const struct ep_config *config = ep_get_config(plan_endpoint(plan));
    bool is_cut_short = config->payload == EP_PAYLOAD_NONE; /* frames end behind their headers */
    ns_t now = 1000;
    size--;
    plan_service(plan, now);
    while (record_next(&data, &size, &record)) {
        ns_t until = now + record.after_ns;
        now = record.where & LATE ? until : settle(plan, now, until);
        if (record.where & RIGHT_SUM)
            put_right(record.frame, record.length);
        uint32_t more = record.where & CUT && is_cut_short ? 1000 : 0;
        uint8_t port = (uint8_t)((record.where & WHERE) % config->ports);
        plan_receive(plan, port, record.frame, (uint32_t)record.length, (uint32_t)record.length + more,
                     now);
        free(record.frame);
        plan_service(plan, now);
    }
    settle(plan, now, now + 1000 * 1000 * 1000);
    uint32_t transfers;
    plan_transfers(plan, &transfers);
    if (plan_open(plan) + plan_failed(plan) > transfers)
        abort();
    plan_free(plan);
    return 0;
}
