/* A rank of a collective, with data: what nccl-tests' programs do for a GPU, here for a host.
 *
 *   rank FOLDER      RANK in the environment says which
 *
 * FOLDER/plan-RANK says what the rank sends and receives, size by size, as a schedule of the lab's
 * collectives has it (plan.py). Messages go by NCCL's network plugin (NCCL_NET_PLUGIN, or
 * libnccl-net.so), a connection for each peer and channel and direction. FOLDER/shared is memory of
 * all ranks: where they leave their handles, wait for each other, and add up what they measured.
 * Rank 0 prints the table. Times are of the clock, which closlab makes the fabric's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nccl_abi.h"

enum {
    RECEIVES_AHEAD = 4, /* of a connection */
    SUMMANDS_AHEAD = 2, /* of them, that are to be added, and wait in memory of their own */
    NAME_BYTES = 16,
    PAGE = 4096,
};

enum op { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALLTOALL, BROADCAST, SENDRECV };
enum redop { SUM, PROD, MAX, MIN, AVG };

struct transfer {
    unsigned connection, wait_count, *waits; /* waits: other transfers of this rank */
    size_t offset, bytes;
    bool reduces, is_over;
    uint8_t *at; /* where it comes from, or is received */
    void *request;
};

struct connection {
    bool sends;
    unsigned handle;
    size_t room; /* the largest that is to be added */
    void *comm, *summands_mr;
    uint8_t *summands;
    unsigned *queue, count, begun, over, summands_begun, summands_over;
};

struct buffer {
    uint8_t *bytes;
    void *mr;
};

/* What all ranks see; of each what it measured, then the handles. */
struct shared {
    _Atomic uint32_t arrived, phase;
};
struct measured {
    double seconds;
    int64_t wrong;
};

static const ncclNet_v8_t *net;
static struct shared *shared;
static struct measured *measured;
static uint8_t *handles;

static int op, redop, root, iterations, warmups, checks, rank, ranks;
static char type_name[NAME_BYTES], redop_name[NAME_BYTES];
static const struct type *type;
static size_t most, element; /* bytes */
static struct connection *connections;
static unsigned connection_count, transfer_count;
static struct transfer *transfers;
static struct buffer sent, received, apart; /* apart: of what is reduced elsewhere than it goes */
static size_t size_bytes, size_count, sends_bytes, receives_bytes;
static FILE *plan;
static double busbw_sum;
static int64_t wrong_sum;
static unsigned busbw_count;

static void fail(const char *format, ...)
{
    va_list list;
    fprintf(stderr, "rank %d: ", rank);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    exit(1);
}

static void *need(void *memory)
{
    if (!memory)
        fail("memory is short");
    return memory;
}

static void fine(ncclResult_t result, const char *what)
{
    if (result)
        fail("the network's %s ended with %d", what, result);
}

static void log_line(int level, unsigned long flags, const char *file, int line,
                     const char *format, ...)
{
    va_list list;
    (void)flags, (void)file, (void)line;
    if (level > NCCL_LOG_WARN)
        return;
    fprintf(stderr, "rank %d: ", rank);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
}

/* --- together --------------------------------------------------------------------------------- */

static void barrier(void)
{
    uint32_t phase = atomic_load(&shared->phase);
    if (atomic_fetch_add(&shared->arrived, 1) + 1 == (uint32_t)ranks) {
        atomic_store(&shared->arrived, 0);
        atomic_store(&shared->phase, phase + 1);
        syscall(SYS_futex, &shared->phase, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
        return;
    }
    while (atomic_load(&shared->phase) == phase)
        syscall(SYS_futex, &shared->phase, FUTEX_WAIT, phase, NULL, NULL, 0);
}

static void share(const char *folder, unsigned handle_count)
{
    char path[PAGE];
    size_t size = PAGE + (size_t)ranks * sizeof *measured +
                  (size_t)handle_count * NCCL_NET_HANDLE_MAXSIZE;
    snprintf(path, sizeof path, "%s/shared", folder);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)size))
        fail("%s cannot be shared", path);
    uint8_t *all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (all == MAP_FAILED)
        fail("memory is short");
    close(fd);
    shared = (struct shared *)all;
    measured = (struct measured *)(all + PAGE);
    handles = (uint8_t *)(measured + ranks);
}

/* All listen, then all connect and accept, whoever is first. */
static void connect_all(void)
{
    void **listening = need(calloc(connection_count, sizeof *listening));
    unsigned left = connection_count;
    for (unsigned i = 0; i < connection_count; i++) {
        const struct connection *c = &connections[i];
        if (!c->sends)
            fine(net->listen(0, handles + (size_t)c->handle * NCCL_NET_HANDLE_MAXSIZE,
                             &listening[i]), "listen");
    }
    barrier();
    uint8_t(*mine)[NCCL_NET_HANDLE_MAXSIZE] = need(calloc(connection_count, sizeof *mine));
    for (unsigned i = 0; i < connection_count; i++)
        memcpy(mine[i], handles + (size_t)connections[i].handle * NCCL_NET_HANDLE_MAXSIZE,
               sizeof *mine);
    const struct timespec nap = {0, 1000000};
    for (; left; nanosleep(&nap, NULL))
        for (unsigned i = 0; i < connection_count; i++) {
            struct connection *c = &connections[i];
            if (c->comm)
                continue;
            if (c->sends)
                fine(net->connect(0, mine[i], &c->comm, NULL), "connect");
            else
                fine(net->accept(listening[i], &c->comm, NULL), "accept");
            left -= c->comm != NULL;
            if (c->comm && !c->sends)
                fine(net->closeListen(listening[i]), "closeListen");
        }
    free(listening);
    free(mine);
    barrier();
}

static struct buffer buffer(void *comm, size_t bytes)
{
    struct buffer made = {need(calloc(1, bytes + 1)), NULL};
    fine(net->regMr(comm, made.bytes, bytes + 1, NCCL_PTR_HOST, &made.mr), "regMr");
    return made;
}

/* --- numbers ---------------------------------------------------------------------------------- */

struct type {
    const char *name;
    size_t bytes;
    void (*reduce)(void *into, const void *from, size_t count);
    void (*divide)(void *all, size_t count);
    void (*store)(void *all, size_t i, double value);
};

/* Sums and products of whole numbers wrap, so they are of unsigned ones. */
#define TYPE(name, ctype, wide) \
    static void reduce_##name(void *told_into, const void *told_from, size_t count) \
    { \
        ctype *into = told_into; \
        const ctype *from = told_from; \
        switch (redop) { \
        case PROD: \
            for (size_t i = 0; i < count; i++) \
                into[i] = (ctype)((wide)into[i] * (wide)from[i]); \
            break; \
        case MAX: \
            for (size_t i = 0; i < count; i++) \
                into[i] = into[i] > from[i] ? into[i] : from[i]; \
            break; \
        case MIN: \
            for (size_t i = 0; i < count; i++) \
                into[i] = into[i] < from[i] ? into[i] : from[i]; \
            break; \
        default: \
            for (size_t i = 0; i < count; i++) \
                into[i] = (ctype)((wide)into[i] + (wide)from[i]); \
        } \
    } \
    static void divide_##name(void *told_all, size_t count) \
    { \
        ctype *all = told_all; \
        for (size_t i = 0; i < count; i++) \
            all[i] = (ctype)((double)all[i] / ranks); \
    } \
    static void store_##name(void *all, size_t i, double value) \
    { \
        ((ctype *)all)[i] = (ctype)value; \
    }

TYPE(int8, int8_t, uint64_t)
TYPE(uint8, uint8_t, uint64_t)
TYPE(int32, int32_t, uint64_t)
TYPE(uint32, uint32_t, uint64_t)
TYPE(int64, int64_t, uint64_t)
TYPE(uint64, uint64_t, uint64_t)
TYPE(float, float, float)
TYPE(double, double, double)

#define NAMED(name, ctype) {#name, sizeof(ctype), reduce_##name, divide_##name, store_##name}
static const struct type types[] = {
    NAMED(int8, int8_t),   NAMED(uint8, uint8_t),   NAMED(int32, int32_t),
    NAMED(uint32, uint32_t), NAMED(int64, int64_t), NAMED(uint64, uint64_t),
    NAMED(float, float),   NAMED(double, double),
};

/* What a rank has at a place: small, so that any order of additions comes to the same, and what all
 * ranks' come to fits into a byte, if they are no more than 64. */
static double value(int of, size_t i, int round)
{
    uint64_t x = (uint64_t)i * 0x9E3779B97F4A7C15u + (uint64_t)(of + 1) * 0xD1B54A32D192ED03u +
                 (uint64_t)round * 0x8CB92BA72F3D8DD7u;
    x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9u;
    x ^= x >> 32;
    uint64_t below = redop != SUM && redop != AVG ? 100 : element == 1 ? 2 : 1000;
    return redop == PROD ? 1 + (x % 64 == 0) : (double)(x % below);
}

/* What is to be there after all, by what the operation is and nothing else. */
static double reduced(size_t i, int round)
{
    double all = value(0, i, round);
    for (int of = 1; of < ranks; of++) {
        double one = value(of, i, round);
        switch (redop) {
        case PROD: all *= one; break;
        case MAX: all = one > all ? one : all; break;
        case MIN: all = one < all ? one : all; break;
        default: all += one;
        }
    }
    return redop == AVG ? all / ranks : all;
}

static double expected(size_t i, int round)
{
    size_t part = receives_bytes / element / (size_t)ranks;
    switch (op) {
    case ALL_REDUCE: return reduced(i, round);
    case REDUCE_SCATTER: return reduced((size_t)rank * (receives_bytes / element) + i, round);
    case ALL_GATHER: return value((int)(i / part), i % part, round);
    case ALLTOALL: return value((int)(i / part), (size_t)rank * part + i % part, round);
    case BROADCAST: return value(root, i, round);
    default: return value((rank + ranks - 1) % ranks, i, round);
    }
}

/* Where a rank's own data is in place, and what it gets. */
static uint8_t *own_place(bool in_place)
{
    return !in_place ? sent.bytes
                     : received.bytes + (op == ALL_GATHER ? (size_t)rank * sends_bytes : 0);
}
static uint8_t *got_place(bool in_place)
{
    bool is_a_part = in_place && op == REDUCE_SCATTER;
    return received.bytes + (is_a_part ? (size_t)rank * receives_bytes : 0);
}

static void fill(bool in_place, int round)
{
    memset(received.bytes, 0, most);
    uint8_t *mine = own_place(in_place);
    if (op == BROADCAST && rank != root)
        return;
    for (size_t i = 0; i < sends_bytes / element; i++)
        type->store(mine, i, value(rank, i, round));
}

static int64_t wrong(bool in_place, int round)
{
    const uint8_t *got = got_place(in_place);
    int64_t count = 0;
    uint64_t right = 0;
    for (size_t i = 0; i < receives_bytes / element; i++) {
        type->store(&right, 0, expected(i, round));
        count += memcmp(got + i * element, &right, element) != 0;
    }
    return count;
}

/* --- a collective ----------------------------------------------------------------------------- */

static bool may_begin(const struct transfer *t)
{
    for (unsigned i = 0; i < t->wait_count; i++)
        if (!transfers[t->waits[i]].is_over)
            return false;
    return true;
}

static void begin(struct connection *c, struct transfer *t, struct buffer from, struct buffer into)
{
    int bytes = (int)t->bytes, tag = 0;
    if (c->sends) {
        if (may_begin(t))
            fine(net->isend(c->comm, from.bytes + t->offset, bytes, tag, from.mr, &t->request),
                 "isend");
        return;
    }
    if (c->begun - c->over == RECEIVES_AHEAD ||
        (t->reduces && c->summands_begun - c->summands_over == SUMMANDS_AHEAD))
        return;
    unsigned place = c->summands_begun % SUMMANDS_AHEAD;
    t->at = t->reduces ? c->summands + place * c->room : into.bytes + t->offset;
    void *at = t->at, *mr = t->reduces ? c->summands_mr : into.mr;
    fine(net->irecv(c->comm, 1, &at, &bytes, &tag, &mr, &t->request), "irecv");
    if (t->request)
        c->summands_begun += t->reduces;
}

static void look(struct connection *c, struct transfer *t, struct buffer into)
{
    int done = 0, bytes = 0;
    if (t->is_over)
        return;
    fine(net->test(t->request, &done, &bytes), "test");
    if (!done)
        return;
    if ((size_t)bytes != t->bytes)
        fail("%d bytes came where %zu are due", bytes, t->bytes);
    if (!c->sends && t->reduces) {
        type->reduce(into.bytes + t->offset, t->at, t->bytes / element);
        c->summands_over++;
    }
    t->is_over = true;
}

static void go_through(struct buffer from, struct buffer into)
{
    unsigned left = connection_count;
    for (unsigned i = 0; i < transfer_count; i++) {
        transfers[i].is_over = false;
        transfers[i].request = NULL;
    }
    for (unsigned i = 0; i < connection_count; i++) {
        struct connection *c = &connections[i];
        c->begun = c->over = c->summands_begun = c->summands_over = 0;
        left -= !c->count;
    }
    while (left)
        for (unsigned i = 0; i < connection_count; i++) {
            struct connection *c = &connections[i];
            for (; c->begun < c->count; c->begun++) {
                struct transfer *t = &transfers[c->queue[c->begun]];
                begin(c, t, from, into);
                if (!t->request)
                    break;
            }
            for (unsigned at = c->over; at < c->begun; at++)
                look(c, &transfers[c->queue[at]], into);
            bool was_done = c->over == c->count;
            while (c->over < c->begun && transfers[c->queue[c->over]].is_over)
                c->over++;
            left -= !was_done && c->over == c->count;
        }
}

static void run(bool in_place)
{
    bool exchanges = op == ALLTOALL || op == SENDRECV;
    struct buffer into = op == REDUCE_SCATTER && !in_place ? apart : received;
    struct buffer from = exchanges && !in_place ? sent : into;
    size_t part = receives_bytes / (size_t)ranks * (size_t)rank;
    if (op == ALLTOALL)
        memmove(received.bytes + part, from.bytes + part, receives_bytes / (size_t)ranks);
    else if (op == ALL_GATHER)
        memmove(received.bytes + part, own_place(in_place), sends_bytes);
    else if (!in_place && !exchanges && (op != BROADCAST || rank == root))
        memcpy(into.bytes, sent.bytes, sends_bytes);
    go_through(from, into);
    if (redop == AVG && op == ALL_REDUCE)
        type->divide(into.bytes, receives_bytes / element);
    if (op == REDUCE_SCATTER) {
        uint8_t *mine = into.bytes + (size_t)rank * receives_bytes;
        if (redop == AVG)
            type->divide(mine, receives_bytes / element);
        if (!in_place)
            memcpy(received.bytes, mine, receives_bytes);
    }
}

/* --- the plan --------------------------------------------------------------------------------- */

static void scan(int wanted, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int found = vfscanf(plan, format, list);
    va_end(list);
    if (found != wanted)
        fail("its plan makes no sense: %s", format);
}

static void read_connections(void)
{
    connections = need(calloc(connection_count + 1, sizeof *connections));
    for (unsigned i = 0; i < connection_count; i++) {
        int sends;
        scan(3, "%d %u %zu", &sends, &connections[i].handle, &connections[i].room);
        connections[i].sends = sends;
    }
}

static void forget_size(void)
{
    for (unsigned i = 0; i < transfer_count; i++)
        free(transfers[i].waits);
    for (unsigned i = 0; i < connection_count; i++) {
        free(connections[i].queue);
        connections[i].queue = NULL;
    }
    free(transfers);
    transfers = NULL;
}

static void read_size(void)
{
    forget_size();
    scan(5, "%zu %zu %zu %zu %u", &size_bytes, &size_count, &sends_bytes, &receives_bytes,
         &transfer_count);
    transfers = need(calloc(transfer_count + 1, sizeof *transfers));
    for (unsigned i = 0; i < connection_count; i++)
        connections[i].count = 0;
    for (unsigned i = 0; i < transfer_count; i++) {
        struct transfer *t = &transfers[i];
        int reduces;
        scan(5, "%u %zu %zu %d %u", &t->connection, &t->offset, &t->bytes, &reduces,
             &t->wait_count);
        t->reduces = reduces;
        t->waits = need(calloc(t->wait_count + 1, sizeof *t->waits));
        for (unsigned w = 0; w < t->wait_count; w++)
            scan(1, "%u", &t->waits[w]);
        struct connection *c = &connections[t->connection];
        c->queue = need(realloc(c->queue, (c->count + 1) * sizeof *c->queue));
        c->queue[c->count++] = i;
    }
}

/* --- what is printed -------------------------------------------------------------------------- */

static void print_heading(void)
{
    static const char *const units[] = {"(us)", "(GB/s)", "(GB/s)", ""};
    printf("# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place"
           "          \n", "", "", "", "", "");
    printf("# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root");
    for (int i = 0; i < 2; i++)
        printf("  %7s  %6s  %6s %6s", "time", "algbw", "busbw", "#wrong");
    printf("\n# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "");
    for (int i = 0; i < 2; i++)
        printf("  %7s  %6s  %6s  %5s", units[0], units[1], units[2], units[3]);
    putchar('\n');
}

/* How many times the bytes of a rank cross its port, by nccl-tests' own reckoning. */
static double bus_factor(void)
{
    double n = ranks;
    switch (op) {
    case ALL_REDUCE: return 2 * (n - 1) / n;
    case BROADCAST: case SENDRECV: return 1;
    default: return (n - 1) / n;
    }
}

static void print_result(double seconds, int64_t wrong_count, bool is_checked)
{
    double us = seconds * 1e6, algbw = seconds > 0 ? (double)size_bytes / 1e9 / seconds : 0;
    double busbw = algbw * bus_factor();
    printf("  %7.*f  %6.2f  %6.2f", us >= 10000 ? 0 : us >= 100 ? 1 : 2, us, algbw, busbw);
    if (is_checked)
        printf("  %5lld", (long long)wrong_count);
    else
        printf("  %5s", "N/A");
    busbw_sum += busbw;
    busbw_count++;
    wrong_sum += wrong_count;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The mean of all ranks' times, and all their wrong elements. */
static void tell(double seconds, int64_t wrong_count, bool is_checked)
{
    measured[rank] = (struct measured){seconds, wrong_count};
    barrier();
    if (!rank) {
        struct measured all = {0, 0};
        for (int i = 0; i < ranks; i++) {
            all.seconds += measured[i].seconds / ranks;
            all.wrong += measured[i].wrong;
        }
        print_result(all.seconds, all.wrong, is_checked);
        fflush(stdout);
    }
    barrier();
}

static void test(bool in_place)
{
    static int round = 100;
    bool exchanges = op == ALLTOALL || op == SENDRECV; /* which are not made for one place */
    bool is_checked = checks && !(in_place && exchanges);
    int64_t wrong_count = 0;
    fill(in_place, round);
    run(in_place);
    barrier();
    double began = now();
    for (int i = 0; i < iterations; i++)
        run(in_place);
    double seconds = (now() - began) / iterations;
    barrier();
    for (int i = 0; is_checked && i < checks && !wrong_count; i++) {
        fill(in_place, ++round);
        barrier(); /* nobody's data comes before */
        run(in_place);
        wrong_count = wrong(in_place, round);
    }
    tell(seconds, wrong_count, is_checked);
}

static void warm_up(void)
{
    read_size();
    for (int i = 0; i < warmups; i++)
        run(false);
    barrier();
}

/* --- all of it -------------------------------------------------------------------------------- */

static void load_network(void)
{
    const char *named = getenv("NCCL_NET_PLUGIN");
    void *library = dlopen(named ? named : "libnccl-net.so", RTLD_NOW | RTLD_LOCAL);
    net = library ? dlsym(library, "ncclNetPlugin_v8") : NULL;
    if (!net)
        fail("%s", dlerror());
    int devices = 0;
    fine(net->init(log_line), "init");
    fine(net->devices(&devices), "devices");
    if (!devices)
        fail("the network has no device");
}

static void make_buffers(void)
{
    void *any = connections[0].comm; /* registrations are not a connection's */
    sent = buffer(any, most);
    received = buffer(any, most);
    apart = buffer(any, op == REDUCE_SCATTER ? most : 0);
    for (unsigned i = 0; i < connection_count; i++) {
        struct connection *c = &connections[i];
        struct buffer summands = buffer(c->comm, c->sends ? 0 : SUMMANDS_AHEAD * c->room);
        c->summands = summands.bytes;
        c->summands_mr = summands.mr;
    }
}

int main(int count, char **words)
{
    char path[PAGE];
    const char *told_rank = getenv("RANK");
    unsigned handle_count, sizes;
    if (count != 2 || !told_rank)
        fail("FOLDER, and RANK in the environment");
    rank = atoi(told_rank);
    setvbuf(stdout, NULL, _IOLBF, 0);
    snprintf(path, sizeof path, "%s/plan-%d", words[1], rank);
    plan = fopen(path, "r");
    if (!plan)
        fail("there is no %s", path);
    scan(12, "%d %15s %15s %d %d %d %d %d %d %zu %u %u", &op, type_name, redop_name, &redop, &root,
         &iterations, &warmups, &checks, &ranks, &most, &handle_count, &connection_count);
    for (unsigned i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, type_name))
            type = &types[i];
    if (!type)
        fail("there is no type %s", type_name);
    element = type->bytes;
    read_connections();
    share(words[1], handle_count);
    load_network();
    connect_all();
    make_buffers();
    warm_up(); /* of the largest, then of the smallest */
    warm_up();
    if (!rank)
        print_heading();
    for (scan(1, "%u", &sizes); sizes; sizes--) {
        read_size();
        if (!rank)
            printf("%12zu  %12zu  %8s  %6s  %6d", size_bytes, size_count, type_name, redop_name,
                   op == BROADCAST ? root : -1);
        test(false);
        test(true);
        if (!rank)
            putchar('\n');
    }
    if (!rank)
        printf("# Out of bounds values : %lld %s\n# Avg bus bandwidth    : %g \n#\n",
               (long long)wrong_sum, wrong_sum ? "FAILED" : "OK", busbw_sum / busbw_count);
    barrier(); /* who ends first does not cut others short */
    return !rank && wrong_sum ? 1 : 0;
}
