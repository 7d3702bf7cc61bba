/* Parts of the core alone, a command a line: what they make of it, a line each.
 *
 *   crc HEX                    the sum by whatever is fastest here, and by tables
 *   registry                   every congestion control, and its parameters, as they are compiled
 *   begin NAME BPS RTT PACKET TRIMS HOPS [PARAMETER=VALUE]...
 *                              start a congestion control afresh; after this and what is fed to it
 *                              prints window, rate, and what it has inside
 *   values                     prints all of its parameters
 *   cnp NS / sent NS BYTES FLYING / look NS / granted UNITS
 *   acked NS BYTES ROUND-TRIP MARKED FLYING / cut NS BYTES FLYING / lost NS BYTES FLYING
 *   ack NS ACKED NEXT OWN PATH HOPS [QUEUE MBPS LEFT SENT]...
 *                              an ACK with what hops of a path wrote, OWN being which of our
 *                              domain's words they were asked for, whose place is empty otherwise
 *   answer NS BYTES MARKED ACKED NEXT [ROUND-TRIP]
 *                              an ACK of so many bytes that tells of marks, and may have been timed
 *   reflects NS BYTES TAG      an ACK of so many bytes that reflects a CSIG tag, in hex; without a TAG
 *                              none
 *   may BYTES                  whether it may send so much
 *   tag TAG                    prints what a CSIG tag says: type, was cut, locator, value
 *   ask BYTES TYPE             prints a tag of such a size that asks for a signal
 *   rx_buffer BPS ROOM XOFF XON   start a receive buffer afresh
 *   put NS STORED WIRE BYTE    a frame of such bytes comes; prints whether there was room
 *   take NS                    prints what has been taken by then, and how the buffer is
 */
#include <stdio.h>
#include <stdlib.h>

#include "cc/cc.h"
#include "icrc.h"
#include "rx_buffer.h"

static void print_crc(const char *hex)
{
    static uint8_t bytes[1 << 16];
    size_t n = 0;
    unsigned byte;
    for (; sscanf(hex, "%2x", &byte) == 1 && n < sizeof bytes; hex += 2)
        bytes[n++] = (uint8_t)byte;
    printf("%u %u\n", crc32_more(0, bytes, n), crc32_more_portable(0, bytes, n));
}

/* Words as the hops of a packet write them, newest first: node, queue, load, and ours. */
static bool read_hops(const char *text, uint32_t hops, unsigned own, uint8_t *stack)
{
    unsigned queue, ours[3];
    int length;
    uint8_t *at = stack;
    for (uint32_t i = 0; i < hops; i++, text += length) {
        if (sscanf(text, "%u %u %u %u%n", &queue, &ours[0], &ours[1], &ours[2], &length) != 4)
            return false;
        be32_store(at, 0xABCD0000u + i);
        be32_store(at + 4, queue == UINT32_MAX ? queue : 3u << 24 | queue);
        be32_store(at + 8, 0xDEAD);
        at += 12;
        for (unsigned word = 0; word < 3; word++)
            if (own & 0x8000u >> word) {
                be32_store(at, ours[word]);
                at += 4;
            }
    }
    return true;
}

static void print_registry(void)
{
    for (unsigned i = 0; i < CC_COUNT; i++) {
        const struct cc_entry *entry = &CC_REGISTRY[i];
        printf("control %s %d %d\n", entry->name, entry->users, entry->hears);
        for (size_t n = 0; entry->ops && n < entry->ops->parameter_count; n++) {
            const struct cc_parameter *p = &entry->ops->parameters[n];
            printf("parameter %s %d %.17g %.17g %.17g %s\n", p->name, p->kind, p->usual, p->least,
                   p->most, p->words ? p->words : "");
        }
    }
}

static void print_flow(struct cc *cc, ns_t now)
{
    double inside[2] = {0};
    bps_t rate = cc->ops->rate ? cc->ops->rate(cc, now) : 0;
    if (cc->ops->look)
        cc->ops->look(cc, inside);
    printf("%.17g %llu %.17g %.17g\n", cc->window, (unsigned long long)rate, inside[0], inside[1]);
}

static void print_values(const struct cc *cc)
{
    for (size_t i = 0; i < cc->ops->parameter_count; i++) {
        const struct cc_parameter *parameter = &cc->ops->parameters[i];
        const char *place = (const char *)cc->parameters + parameter->place;
        double real;
        uint64_t number;
        memcpy(&real, place, sizeof real);
        memcpy(&number, place, sizeof number);
        bool is_real = parameter->kind == CC_IS_REAL || parameter->kind == CC_IS_SHARE;
        printf("%.17g ", is_real ? real : (double)number);
    }
    printf("\n");
}

static struct cc *begin(char *line)
{
    static struct cc_values values[CC_COUNT];
    char name[16], *rest;
    int trims, length;
    struct cc_link link = {0};
    if (sscanf(line, "begin %15s %lu %lu %lu %d %u%n", name, &link.rate, &link.base_rtt, &link.packet,
               &trims, &link.hops, &length) != 6 ||
        !cc_named(name) || cc_named(name) == CC_COUNT)
        exit(2);
    link.has_trimming = trims;
    cc_usual(&values[cc_named(name)], cc_named(name), link.rate);
    for (char *item = strtok_r(line + length, " \n", &rest); item; item = strtok_r(NULL, " \n", &rest)) {
        char key[64], text[64];
        if (sscanf(item, "%63[^=]=%63s", key, text) != 2 || !cc_assign(values, key, text, link.rate))
            exit(3);
    }
    struct cc *cc = cc_new(cc_named(name), &values[cc_named(name)], &link);
    print_flow(cc, 0);
    return cc;
}

static bool read_ack(const char *line, struct cc *cc, ns_t *now)
{
    enum { NODE = 0x8000, QUEUE = 0x1000, LOAD = 0x0100 };
    uint8_t words[16 * 24];
    unsigned long long acked, next;
    unsigned own, path, hops;
    int length;
    if (sscanf(line, "ack %lu %llu %llu %x %u %u%n", now, &acked, &next, &own, &path, &hops,
               &length) != 6 || hops > 16 || !read_hops(line + length, hops, own, words))
        return false;
    uint32_t each = 3 + (uint32_t)__builtin_popcount(own);
    struct int_stack stack = {words, hops, each, NODE | QUEUE | LOAD, (uint16_t)own, (uint16_t)path};
    struct cc_ack ack = {.now = *now, .round_trip = CC_UNTOLD, .acked = acked, .next = next,
                         .stack = &stack};
    cc->ops->acked(cc, &ack);
    return true;
}

static bool read_answer(const char *line, struct cc *cc, ns_t *now)
{
    unsigned long bytes, round_trip = CC_UNTOLD;
    unsigned long long acked, next;
    int marked;
    if (sscanf(line, "answer %lu %lu %d %llu %llu %lu", now, &bytes, &marked, &acked, &next,
               &round_trip) < 5)
        return false;
    struct cc_ack ack = {.now = *now, .bytes = bytes, .round_trip = round_trip, .marked = marked,
                         .acked = acked, .next = next};
    cc->ops->acked(cc, &ack);
    return true;
}

static uint32_t read_tag(const char *hex, uint8_t tag[CSIG_WIDE])
{
    uint32_t n = 0;
    unsigned byte;
    for (; n < CSIG_WIDE && sscanf(hex, "%2x", &byte) == 1; hex += 2)
        tag[n++] = (uint8_t)byte;
    return n;
}

static bool read_reflection(const char *line, struct cc *cc, ns_t *now)
{
    char hex[17] = "";
    uint8_t tag[CSIG_WIDE];
    unsigned long bytes;
    struct csig csig;
    if (sscanf(line, "reflects %lu %lu %16s", now, &bytes, hex) < 2)
        return false;
    struct cc_ack ack = {.now = *now, .bytes = bytes, .round_trip = CC_UNTOLD};
    if (*hex) {
        csig = csig_read(tag, read_tag(hex, tag));
        ack.csig = &csig;
    }
    cc->ops->acked(cc, &ack);
    return true;
}

static bool print_tag(const char *line)
{
    char hex[17];
    uint8_t tag[CSIG_WIDE] = {0};
    uint32_t bytes, type;
    if (sscanf(line, "tag %16s", hex) == 1) {
        bytes = read_tag(hex, tag);
        struct csig csig = csig_read(tag, bytes);
        printf("%u %d %u %u %d\n", csig.type, csig.was_cut, csig.locator, csig.value,
               csig_bytes(be16_load(tag)) == bytes);
    } else if (sscanf(line, "ask %u %u", &bytes, &type) == 2) {
        csig_ask(tag, bytes, type);
        for (uint32_t i = 0; i < bytes; i++)
            printf("%02x", tag[i]);
        printf("\n");
    } else {
        return false;
    }
    return true;
}

/* Feed a control; false if it is not known with what. */
static bool feed(const char *line, struct cc *cc)
{
    struct cc_ack ack = {0};
    unsigned long bytes, flying, now = 0;
    unsigned units;
    int marked;
    if (sscanf(line, "may %lu", &bytes) == 1) {
        printf("%d\n", cc->ops->may_send(cc, bytes, 0));
        return true;
    }
    if (!strncmp(line, "values", 6)) {
        print_values(cc);
        return true;
    }
    if (sscanf(line, "cnp %lu", &now) == 1)
        cc->ops->notified(cc, now);
    else if (sscanf(line, "sent %lu %lu %lu", &now, &bytes, &flying) == 3) {
        if (cc->ops->rate)
            cc->ops->rate(cc, now);
        cc->ops->sent(cc, bytes, flying, now);
    } else if (sscanf(line, "granted %u", &units) == 1)
        cc->ops->granted(cc, units);
    else if (sscanf(line, "acked %lu %lu %lu %d %lu", &now, &bytes, &ack.round_trip, &marked,
                    &flying) == 5) {
        ack.now = now, ack.bytes = bytes, ack.marked = marked, ack.in_flight = flying;
        cc->ops->acked(cc, &ack);
    } else if (sscanf(line, "cut %lu %lu %lu", &now, &bytes, &flying) == 3) {
        cc->ops->cut(cc, bytes, false, flying, now);
    } else if (sscanf(line, "lost %lu %lu %lu", &now, &bytes, &flying) == 3) {
        cc->ops->lost(cc, bytes, flying, now);
    } else if (sscanf(line, "look %lu", &now) != 1 && !read_ack(line, cc, &now) &&
               !read_answer(line, cc, &now) && !read_reflection(line, cc, &now)) {
        return false;
    }
    print_flow(cc, now);
    return true;
}

static void print_put(struct rx_buffer *rx_buffer, ns_t now, uint32_t stored, uint32_t wire, int byte,
                      bool may_be_lost)
{
    uint8_t *frame = malloc(stored); /* of its own, so that reading past it shows */
    memset(frame, byte, stored);
    printf("%d\n", rx_buffer_put(rx_buffer, frame, stored, wire, may_be_lost, now));
    free(frame);
}

static void print_taken(struct rx_buffer *rx_buffer, ns_t now)
{
    uint32_t stored, wire;
    for (const uint8_t *frame; (frame = rx_buffer_take(rx_buffer, now, &stored, &wire));) {
        bool whole = true;
        for (uint32_t i = 0; i < stored; i++)
            whole = whole && frame[i] == frame[0];
        printf("%u:%u:%d ", stored, wire, whole ? frame[0] : -1);
    }
    printf("%u %d\n", rx_buffer->held, rx_buffer->full_enough);
}

static bool read_rx_buffer(const char *line, struct rx_buffer *rx_buffer)
{
    struct rx_buffer_config config = {0};
    unsigned long long at;
    unsigned stored, wire, byte, may_be_lost;
    if (sscanf(line, "rx_buffer %lu %u %u %u", &config.rate, &config.room, &config.xoff,
               &config.xon) == 4) {
        rx_buffer_free(rx_buffer);
        if (rx_buffer_problem(&config) || !rx_buffer_init(rx_buffer, &config))
            exit(2);
    } else if (sscanf(line, "put %llu %u %u %u %u", &at, &stored, &wire, &byte, &may_be_lost) == 5) {
        print_put(rx_buffer, at, stored, wire, (int)byte, may_be_lost);
    } else if (sscanf(line, "take %llu", &at) == 1) {
        print_taken(rx_buffer, at);
    } else {
        return false;
    }
    return true;
}

int main(void)
{
    struct rx_buffer rx_buffer = {0};
    struct cc *cc = NULL;
    char *line = NULL;
    size_t room = 0;

    while (getline(&line, &room, stdin) > 0) {
        if (read_rx_buffer(line, &rx_buffer) || print_tag(line))
            continue;
        if (!strncmp(line, "crc ", 4)) {
            print_crc(line + 4);
        } else if (!strncmp(line, "registry", 8)) {
            print_registry();
        } else if (!strncmp(line, "begin ", 6)) {
            free(cc);
            cc = begin(line);
        } else if (!cc || !feed(line, cc)) {
            return 2;
        }
    }
    free(cc);
    rx_buffer_free(&rx_buffer);
    free(line);
    return 0;
}
