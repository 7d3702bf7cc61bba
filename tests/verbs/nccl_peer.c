/* Two programs that call a plugin of NCCL's network as NCCL does.
 *
 *   nccl_peer PLUGIN ADDRESS CASE [SEED]     waits on "-", else connects to the one that waits
 *
 * Handles are told over TCP, as NCCL's bootstrap does. A connection leads each way; both ends go
 * through the same list of messages, by the seed, as many at a time as the plugin takes. A line
 * each says what came about: "WORD NUMBER".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>

#include "meeting.h"
#include "nccl_abi.h"

enum {
    MESSAGES = 100,
    ONE_LARGE = 50, /* of them, */
    LARGE = 3 << 20,
    SMALL = 20000,
    MANY_ASKED = 100000000,
};

static const ncclNet_v8_t *net;
static unsigned warned;

static void say(int level, unsigned long flags, const char *file, int line, const char *format, ...)
{
    va_list list;
    (void)flags;
    warned += level == NCCL_LOG_WARN;
    fprintf(stderr, "%s:%d: ", file, line);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
}

static void fine(ncclResult_t result, const char *what)
{
    if (result) {
        fprintf(stderr, "%s: result %d\n", what, result);
        exit(2);
    }
}

/* As many bits as one likes of a number, and a place. */
static uint32_t drawn(uint64_t seed, uint64_t place)
{
    uint64_t x = seed * 0x9E3779B97F4A7C15u + place * 0xD1B54A32D192ED03u + 1;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    return (uint32_t)((x ^ x >> 32) >> 7);
}

struct message {
    uint32_t size, room;
    uint8_t *bytes;
    void *mr, *request;
    bool is_over;
};

static uint32_t size_of(uint64_t seed, unsigned i)
{
    uint32_t kind = drawn(seed, i) % 8, any = drawn(seed, i + 1000);
    if (i == ONE_LARGE)
        return LARGE + any % 16;
    return kind == 0 ? 0 : kind == 1 ? 1 + any % 16 : any % SMALL;
}

/* Messages of one end, each with memory of its own: what it sends, or room for what comes. */
static struct message *messages(void *comm, uint64_t seed, bool sends)
{
    struct message *all = calloc(MESSAGES, sizeof *all);
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct message *one = &all[i];
        one->size = size_of(seed, i);
        one->room = one->size + (sends ? 0 : drawn(seed, i + 2000) % 3 * 1000);
        one->bytes = calloc(1, one->room + 1);
        for (uint32_t at = 0; sends && at < one->size; at++)
            one->bytes[at] = (uint8_t)drawn(seed + i, at);
        fine(net->regMr(comm, one->bytes, one->room + 1, NCCL_PTR_HOST, &one->mr), "regMr");
    }
    return all;
}

static ncclResult_t begin(void *comm, struct message *one, bool sends)
{
    int room = (int)one->room, tag = 7;
    void *bytes = one->bytes;
    if (sends)
        return net->isend(comm, bytes, (int)one->size, tag, one->mr, &one->request);
    return net->irecv(comm, 1, &bytes, &room, &tag, &one->mr, &one->request);
}

/* One direction's part of a round: begin what can be begun, look at all that has not ended. */
struct direction {
    void *comm;
    struct message *all;
    bool sends;
    unsigned begun, over, most;
};

static void go_round(struct direction *way)
{
    while (way->begun < MESSAGES) {
        fine(begin(way->comm, &way->all[way->begun], way->sends), "isend or irecv");
        if (!way->all[way->begun].request)
            break;
        way->begun++;
    }
    if (way->most < way->begun - way->over)
        way->most = way->begun - way->over;
    for (unsigned i = 0; i < way->begun; i++) {
        struct message *one = &way->all[way->begun - 1 - i]; /* the latest first */
        int done = 0, size = -1;
        if (one->is_over)
            continue;
        fine(net->test(one->request, &done, &size), "test");
        if (!done)
            continue;
        need(size == (int)one->size, "another size");
        one->is_over = true;
        way->over++;
    }
}

static unsigned wrong_bytes(const struct message *all, uint64_t seed)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < MESSAGES; i++)
        for (uint32_t at = 0; at < all[i].room; at++)
            wrong += all[i].bytes[at] !=
                     (at < all[i].size ? (uint8_t)drawn(seed + i, at) : 0);
    return wrong;
}

static void *send_comm, *recv_comm, *listen_comm;

static void connect_both_ways(void)
{
    uint8_t mine[NCCL_NET_HANDLE_MAXSIZE], others[NCCL_NET_HANDLE_MAXSIZE];
    fine(net->listen(0, mine, &listen_comm), "listen");
    exchange(mine, others, sizeof mine);
    while (!send_comm || !recv_comm) {
        if (!send_comm)
            fine(net->connect(0, others, &send_comm, NULL), "connect");
        if (!recv_comm)
            fine(net->accept(listen_comm, &recv_comm, NULL), "accept");
    }
    fine(net->closeListen(listen_comm), "closeListen");
}

static void exchange_messages(bool asks, uint64_t seed)
{
    uint64_t mine = seed * 2 + asks, others = seed * 2 + !asks;
    struct direction out = {send_comm, messages(send_comm, mine, true), true, 0, 0, 0};
    struct direction in = {recv_comm, messages(recv_comm, others, false), false, 0, 0, 0};
    while (out.over < MESSAGES || in.over < MESSAGES) {
        go_round(&out);
        go_round(&in);
    }
    printf("wrong %u\nsent-at-once %u\nreceived-at-once %u\n", wrong_bytes(in.all, others),
           out.most, in.most);
    void *flush = &flush;
    fine(net->iflush(recv_comm, 1, NULL, NULL, NULL, &flush), "iflush");
    need(!flush, "a host's memory is flushed");
    for (unsigned i = 0; i < MESSAGES; i++) {
        fine(net->deregMr(send_comm, out.all[i].mr), "deregMr");
        fine(net->deregMr(recv_comm, in.all[i].mr), "deregMr");
        free(out.all[i].bytes), free(in.all[i].bytes);
    }
    free(out.all), free(in.all);
}

/* One message: how it ended. */
static ncclResult_t pass(void *comm, struct message *one, bool sends)
{
    int done = 0;
    ncclResult_t result = ncclSuccess;
    one->request = NULL;
    for (unsigned i = 0; !result && !one->request && i < MANY_ASKED; i++)
        result = begin(comm, one, sends);
    for (unsigned i = 0; !result && !done && i < MANY_ASKED; i++)
        result = net->test(one->request, &done, NULL);
    return result;
}

static struct message message(void *comm, uint32_t size)
{
    struct message one = {.size = size, .room = size, .bytes = calloc(1, size)};
    fine(net->regMr(comm, one.bytes, size, NCCL_PTR_HOST, &one.mr), "regMr");
    return one;
}

/* The one that asks sends on and on, or receives; the other is killed in the midst of it. */
static void until_killed(bool asks, bool sends)
{
    void *comm = asks == sends ? send_comm : recv_comm;
    struct message one = message(comm, SMALL);
    for (unsigned i = 0; asks || i < MESSAGES; i++) {
        ncclResult_t result = pass(comm, &one, asks == sends);
        if (!result)
            continue;
        printf("ended-with %d\nwarned %d\n", result, warned > 0);
        exit(0);
    }
    raise(SIGKILL);
}

static void misuse(bool asks)
{
    void *comm = asks ? send_comm : recv_comm, *mr;
    struct message one = message(comm, asks ? 1001 : 1000);
    if (asks) {
        printf("too-long %d\n", pass(comm, &one, true));
        printf("of-a-gpu %d\n", net->regMr(comm, one.bytes, 1000, 2, &mr));
        one.size = 1000;
    }
    fine(pass(comm, &one, asks), "what is right after all");
    int sizes[2] = {10, 10}, tags[2] = {0};
    void *two[2] = {one.bytes, one.bytes}, *mrs[2] = {one.mr, one.mr}, *request;
    printf("two-at-once %d\n", net->irecv(recv_comm, 2, two, sizes, tags, mrs, &request));
    fine(net->deregMr(comm, one.mr), "deregMr");
    free(one.bytes);
}

int main(int count, char **words)
{
    need(count >= 4, "PLUGIN ADDRESS CASE");
    bool asks = strcmp(words[2], "-");
    setvbuf(stdout, NULL, _IOLBF, 0);
    void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    net = library ? dlsym(library, "ncclNetPlugin_v8") : NULL;
    if (!net) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    int devices = 0;
    ncclNetProperties_v8_t of;
    fine(net->init(say), "init");
    fine(net->devices(&devices), "devices");
    need(devices == 1, "a device");
    fine(net->getProperties(0, &of), "getProperties");
    printf("speed %d\nguid %d\nrequests %d\n", of.speed, of.guid != 0, of.maxRecvs);
    meet(words[2]);
    connect_both_ways();
    if (!strcmp(words[3], "exchange"))
        exchange_messages(asks, count > 4 ? strtoull(words[4], NULL, 10) : 1);
    else if (!strcmp(words[3], "misuse"))
        misuse(asks);
    else
        until_killed(asks, !strcmp(words[3], "receiver-killed"));
    uint8_t over = 0;
    exchange(&over, &over, 1); /* who closes first does not cut the other short */
    fine(net->closeSend(send_comm), "closeSend");
    fine(net->closeRecv(recv_comm), "closeRecv");
    return 0;
}
