/* Frames from anybody into switches that a controller has filled, a fuzzer's input after another.
 *
 * Switches and time go on from one input to the next, as in life; after each of them all that may
 * leave does, and the account of packets has to be right. */
#include "records.h"
#include "sw.h"

enum { SWITCHES_MAX = 8, IPV4_AT = 14, IPV4_BYTES = 20 };

static struct sw *switches[SWITCHES_MAX];
static unsigned count;
static ns_t now = 1000;
static const ns_t rest = 10 * 1000 * 1000; /* after an input, for what it left behind */
static const ns_t long_ago = (ns_t)1 << 47; /* half of what a program's clock can tell (docs/limits.md) */

static bool take(void *port, const uint8_t *frame, uint32_t len, ns_t when)
{
    (void)port, (void)when;
    /* Every byte is looked at, so that a sanitizer sees what was never written, or is gone. */
    volatile uint8_t all = 0;
    for (uint32_t i = 0; i < len; i++)
        all = (uint8_t)(all ^ frame[i]);
    return true;
}

static bool take_cut(void *port, const uint8_t *frame, uint32_t len, uint32_t absent, ns_t when)
{
    (void)absent;
    return take(port, frame, len, when);
}

static void leave(void *port) { (void)port; }

static const struct port_ops nowhere = {.send = take, .send_cut = take_cut, .close = leave};

/* One more switch, whose ports, so many, lead nowhere from now on. */
void fuzz_add(struct sw *sw, uint32_t ports)
{
    for (uint32_t port = 1; port <= ports; port++)
        sw_attach(sw, port, &nowhere, NULL);
    switches[count++ % SWITCHES_MAX] = sw;
}

static void put_right(uint8_t *ip)
{
    uint32_t sum = 0;
    ip[10] = ip[11] = 0;
    for (int i = 0; i < IPV4_BYTES; i += 2)
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = ~((sum & 0xFFFF) + (sum >> 16));
    ip[10] = (uint8_t)(sum >> 8);
    ip[11] = (uint8_t)sum;
}

static void settle(struct sw *sw, ns_t until)
{
    for (unsigned turns = 0; turns < 100000; turns++) {
        ns_t wake = sw_service(sw, now);
        if (wake > until)
            break;
        if (wake > now)
            now = wake;
    }
    now = until;
}

static int account_is_right(const struct sw *sw)
{
    uint64_t out = sw->sent + sw->held;
    for (unsigned why = 0; why < DROP_REASONS; why++)
        out += sw->drops[why];
    return sw->received + sw->copies == out;
}

int fuzz(const uint8_t *data, size_t size)
{
    struct record record;
    if (!size || !count)
        return 0;
    struct sw *sw = switches[*data++ % count];
    size--;
    while (record_next(&data, &size, &record)) {
        now += now < long_ago ? record.after_ns : 0;
        if (record.where & RIGHT_SUM && record.length >= IPV4_AT + IPV4_BYTES)
            put_right(record.frame + IPV4_AT);
        uint32_t port = 1 + (record.where & WHERE) % 12;
        if (record.where & CUT)
            sw_receive_cut(sw, port, record.frame, (uint32_t)record.length, 1000, now);
        else
            sw_receive(sw, port, record.frame, (uint32_t)record.length, now);
        free(record.frame);
        if (record.where & LATE)
            sw_service(sw, now);
    }
    settle(sw, now + rest);
    if (!account_is_right(sw))
        abort();
    return 0;
}
