/* The worker thread.
 *
 * A turn receives from the ports that may have frames, services switches, lets a visitor in, and
 * then waits. How a port is watched depends on how busy it is:
 *
 *   quiet  in epoll, looked at when epoll says so
 *   busy   has more frames than we could sleep between: out of epoll, which costs its sender
 *          something per frame, and looked at every turn, which costs next to nothing, for the
 *          ring is memory
 *
 * With a busy port the loop keeps looking, and yields between two looks. If it shares its core,
 * with the senders perhaps, others run then for as long as the kernel lets them: they fill the
 * rings while it does not run, and it empties them in large bursts while they do not. That is too
 * long if something is due before; the kernel counts how often others take the core, and while
 * they do, the loop sleeps until then. A port quiet for QUIET_NS goes back into epoll.
 *
 * A port whose interface takes no more stalls its queues. Epoll says when it has room again, or it
 * is tried again after RETRY_NS.
 *
 * Where time is dilated, frames are taken in when they are due (arrival_times.h), or else at the instants at which
 * the kernel had them, in this order over all ports, and a switch does first what it was to do before.
 * So a turn that comes late makes nothing late but what should have been handed over meanwhile, and
 * cables are as long as that. Of that time a turn waits a part (`slack`), to do at once what would have been
 * several; busy ports are looked at as often, and nobody yields.
 *
 * Sleeping costs: some ten microseconds of work, thirty in a virtual machine, and about as many
 * late. So a deadline nearer than that is awaited with open eyes.
 */
#define _GNU_SOURCE
#include "loop.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "kernel_qdisc.h"
#include "taps.h"

#define BURST 64
#define IN_ORDER_MAX 16 /* frames taken in in order, until it is seen what else is due */
#define STEPS_MAX 64    /* of a switch, one after the other, when it is late */
#define EVENTS 64

/* All by the wall clock */
#define BUSY_FRAMES 128         /* within BUSY_NS make a port busy */
#define BUSY_NS 1000000
#define QUIET_NS 200000         /* without a frame, and a busy port is no longer busy */
#define SNAPSHOT_NS 20000         /* between two looks at quiet ports while others are busy */
#define NEAR_NS 20000           /* nearer deadlines are not slept for */
#define RETRY_NS 500000         /* until a queueing discipline that was full may not be */
#define SLEEP_MAX_NS 1000000000
#define CROWD_CHECK_NS 20000000 /* between two looks at whether others take the core */
#define CROWD_MIN 2           /* times in that time that they did */
#define CROWDED_NS 1000000000   /* if they do, for how long to believe so */
#define STEP_ASIDE_NS 500000    /* and how long to sleep, for them to fill the rings */
#define SLICE_NS 10000000       /* others may run for so long, if we yield to them */
#define AT_THE_DOOR_NS 300000   /* that a visitor waits while we never sleep */
#define LINK_CHECK_NS 100000000 /* between two looks at the interfaces' state: the kernel tells of
                                 * changes, but not of those in other namespaces */
#define BUSY_SLACKS 16 /* turns so late in which */
#define SLACK_FRAMES 4 /* so many frames make a port busy, and none any more a quiet one */
#define SEEN_CHECK_NS 200000000 /* between two looks at who sees interfaces: the kernel tells of those who
                                 * ask for all frames of one, and of queueing disciplines */

struct hosted {
    struct sw *sw;
    ns_t wake, served; /* when it wants to be served, and when it last was */
    bool touched;
};

struct loop_port {
    struct socket_port *driver;
    const struct short_cable *come; /* what comes by it without the kernel */
    struct hosted *host;
    uint32_t number;
    bool has_frames; /* epoll says so */
    bool is_busy;
    enum socket_wait wait;
    ns_t retry;      /* when to try again to send; wall clock */
    uint32_t events; /* that epoll watches it for */
    ns_t last; /* had frames; wall clock */
    ns_t since; /* when frames began to be counted; wall clock */
    ns_t came;  /* its next frame */
    unsigned taken; /* of its frames, this turn */
    uint32_t frames;
};

struct loop {
    double dilation;
    ns_t origin;
    int epoll, knock;
    int links; /* a netlink socket: readable when an interface of this namespace has changed */
    struct pkt_pool pool;
    pthread_mutex_t owner;
    unsigned waiting, served; /* atomic: threads at the door, and visits so far */
    bool stopping, running;
    bool has_joined; /* ports of its own, by short cables */
    pthread_t thread;
    struct hosted **hosts;
    struct loop_port **ports, **ready; /* ready: room for as many, that have frames; or in an order */
    uint32_t n_hosts, n_ports, n_busy, n_waiting;
    uint64_t late[LOOP_LATE_CLASSES];
    int taps, qdiscs; /* what asks who sees interfaces; opened at need */
    ns_t link_check, looked, seen_check; /* wall clock, as the rest */
    ns_t crowd_check, crowded_until;
    ns_t slack; /* how late a turn may be; 0: as little as possible */
    ns_t due;   /* the earliest of the frames that wait for it */
    ns_t retry; /* wall clock: when a port wants to be tried again, or SW_NEVER */
    ns_t seen_waiting;  /* wall clock: since when there were visitors at each turn, or 0 */
    uint64_t put_aside; /* at the last crowd check */
};

static ns_t wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (ns_t)t.tv_sec * 1000000000 + (ns_t)t.tv_nsec;
}

static ns_t dilated(const struct loop *loop, ns_t real)
{
    ns_t passed = real - loop->origin;
    return loop->dilation == 1.0 ? passed : (ns_t)((double)passed / loop->dilation);
}

static ns_t earlier(ns_t a, ns_t b) { return a < b ? a : b; }

static bool is_dilated(const struct loop *loop) { return loop->dilation != 1.0; }

ns_t loop_now(const struct loop *loop) { return dilated(loop, wall()); }

struct pkt_pool *loop_pool(struct loop *loop) { return &loop->pool; }

struct loop *loop_new(double dilation)
{
    struct loop *loop = calloc(1, sizeof *loop);
    if (!loop)
        return NULL;
    loop->dilation = dilation;
    loop->origin = wall();
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->knock = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    loop->links = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
    loop->taps = loop->qdiscs = -1;
    struct sockaddr_nl groups = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK | RTMGRP_TC};
    pthread_mutex_init(&loop->owner, NULL);
    pkt_pool_init(&loop->pool);
    struct epoll_event knocks = {.events = EPOLLIN, .data.ptr = &loop->knock};
    struct epoll_event changes = {.events = EPOLLIN, .data.ptr = &loop->links};
    if (loop->epoll < 0 || loop->knock < 0 || loop->links < 0 ||
        bind(loop->links, (struct sockaddr *)&groups, sizeof groups) ||
        epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->knock, &knocks) ||
        epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->links, &changes)) {
        loop_free(loop);
        return NULL;
    }
    return loop;
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    loop_stop(loop);
    if (loop->epoll >= 0)
        close(loop->epoll);
    if (loop->knock >= 0)
        close(loop->knock);
    if (loop->links >= 0)
        close(loop->links);
    if (loop->taps >= 0)
        close(loop->taps);
    if (loop->qdiscs >= 0)
        close(loop->qdiscs);
    for (uint32_t i = 0; i < loop->n_ports; i++)
        free(loop->ports[i]); /* its driver is the switch's */
    for (uint32_t i = 0; i < loop->n_hosts; i++)
        free(loop->hosts[i]);
    pkt_pool_free(&loop->pool);
    pthread_mutex_destroy(&loop->owner);
    free(loop->hosts);
    free(loop->ports);
    free(loop->ready);
    free(loop);
}

/* Visitors */

static void knock(struct loop *loop)
{
    uint64_t one = 1;
    if (write(loop->knock, &one, sizeof one) < 0)
        return; /* full: it will wake anyway */
}

void loop_enter(struct loop *loop)
{
    __atomic_add_fetch(&loop->waiting, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&loop->owner);
    __atomic_sub_fetch(&loop->waiting, 1, __ATOMIC_SEQ_CST);
}

void loop_leave(struct loop *loop, bool wake)
{
    ns_t now = loop_now(loop);
    for (uint32_t i = 0; wake && i < loop->n_hosts; i++) {
        loop->hosts[i]->touched = true;
        loop->hosts[i]->served = now; /* or changed: nothing happens to it before that any more */
    }
    __atomic_add_fetch(&loop->served, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&loop->owner);
    if (wake)
        knock(loop);
}

/* Let one visitor in, if any has been at the door for long: to wait until it has woken takes time,
 * and most come in while we sleep. */
static void open_door(struct loop *loop, ns_t real)
{
    if (!__atomic_load_n(&loop->waiting, __ATOMIC_SEQ_CST)) {
        loop->seen_waiting = 0;
        return;
    }
    if (!loop->seen_waiting)
        loop->seen_waiting = real;
    if (real - loop->seen_waiting < AT_THE_DOOR_NS)
        return;
    loop->seen_waiting = 0;
    unsigned before = __atomic_load_n(&loop->served, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&loop->owner);
    while (__atomic_load_n(&loop->waiting, __ATOMIC_SEQ_CST) &&
           __atomic_load_n(&loop->served, __ATOMIC_SEQ_CST) == before)
        sched_yield();
    pthread_mutex_lock(&loop->owner);
}

/* Switches and ports */

static struct hosted *host_of(const struct loop *loop, const struct sw *sw)
{
    for (uint32_t i = 0; i < loop->n_hosts; i++)
        if (loop->hosts[i]->sw == sw)
            return loop->hosts[i];
    return NULL;
}

bool loop_add(struct loop *loop, struct sw *sw)
{
    struct hosted **hosts = realloc(loop->hosts, (loop->n_hosts + 1) * sizeof(void *));
    if (!hosts)
        return false;
    loop->hosts = hosts;
    struct hosted *host = calloc(1, sizeof *host);
    if (!host)
        return false;
    *host = (struct hosted){.sw = sw, .wake = SW_NEVER};
    loop->hosts[loop->n_hosts++] = host;
    return true;
}

/* Let epoll watch a port for what it should now be watched for. */
static bool watch(struct loop *loop, struct loop_port *port)
{
    /* A frame that waits is not told of again and again. */
    uint32_t how_told = is_dilated(loop) ? (uint32_t)EPOLLET : 0;
    uint32_t events = (port->is_busy ? 0u : (uint32_t)EPOLLIN | how_told) |
                      (port->wait == SOCKET_POLL ? (uint32_t)EPOLLOUT : 0u);
    int how = !port->events ? EPOLL_CTL_ADD : events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;
    struct epoll_event event = {.events = events, .data.ptr = port};
    if (events == port->events)
        return true;
    if (epoll_ctl(loop->epoll, how, socket_fd(port->driver), &event))
        return false;
    port->events = events;
    return true;
}

static void drop_port(struct loop *loop, uint32_t i)
{
    struct loop_port *port = loop->ports[i];
    loop->n_busy -= port->is_busy;
    loop->n_waiting -= port->wait != SOCKET_GOES;
    if (port->events)
        epoll_ctl(loop->epoll, EPOLL_CTL_DEL, socket_fd(port->driver), NULL);
    loop->ports[i] = loop->ports[--loop->n_ports];
    free(port);
}

static bool add_port(struct loop *loop, struct sw *sw, uint32_t number, struct socket_port *driver)
{
    struct loop_port **ports = realloc(loop->ports, (loop->n_ports + 1) * sizeof(void *));
    if (!ports)
        return false;
    loop->ports = ports;
    struct loop_port **ready = realloc(loop->ready, (loop->n_ports + 1) * sizeof(void *));
    if (!ready)
        return false;
    loop->ready = ready;
    struct loop_port *port = calloc(1, sizeof *port);
    if (!port)
        return false;
    *port = (struct loop_port){.driver = driver,
                               .come = socket_short_cable(driver),
                               .host = host_of(loop, sw),
                               .number = number};
    if (!watch(loop, port)) {
        free(port);
        return false;
    }
    loop->ports[loop->n_ports++] = port;
    socket_set_clock(driver, loop->origin, loop->dilation);
    for (uint32_t i = 0; is_dilated(loop) && i < loop->n_ports; i++)
        loop->has_joined |= socket_join(driver, loop->ports[i]->driver);
    if (socket_attach(sw, number, driver))
        return true;
    int saved = errno;
    drop_port(loop, loop->n_ports - 1);
    errno = saved;
    return false;
}

bool loop_add_port(struct loop *loop, struct sw *sw, uint32_t number, struct socket_port *driver)
{
    if (add_port(loop, sw, number, driver)) {
        sw_set_up(sw, number, socket_check(driver), loop_now(loop));
        return true;
    }
    int saved = errno;
    socket_close(driver);
    errno = saved;
    return false;
}

void loop_remove_port(struct loop *loop, struct sw *sw, uint32_t number)
{
    for (uint32_t i = 0; i < loop->n_ports; i++)
        if (loop->ports[i]->host->sw == sw && loop->ports[i]->number == number) {
            drop_port(loop, i);
            break;
        }
    sw_detach(sw, number);
}

void loop_remove(struct loop *loop, struct sw *sw)
{
    for (uint32_t i = loop->n_ports; i-- > 0;)
        if (loop->ports[i]->host->sw == sw)
            loop_remove_port(loop, sw, loop->ports[i]->number);
    for (uint32_t i = 0; i < loop->n_hosts; i++)
        if (loop->hosts[i]->sw == sw) {
            free(loop->hosts[i]);
            loop->hosts[i] = loop->hosts[--loop->n_hosts];
            return;
        }
}

/* The thread */

/* How a port waits from now on for its interface to take more. */
static void wait_for_room(struct loop *loop, struct loop_port *port, enum socket_wait wait)
{
    loop->n_waiting -= port->wait != SOCKET_GOES;
    port->wait = wait;
    port->retry = wall() + RETRY_NS;
    if (!watch(loop, port))
        port->wait = SOCKET_RETRY; /* no memory: the other way does as well */
    loop->n_waiting += port->wait != SOCKET_GOES;
    if (port->wait == SOCKET_RETRY && port->retry < loop->retry)
        loop->retry = port->retry;
}

static void try_again(struct loop *loop, struct loop_port *port)
{
    wait_for_room(loop, port, socket_resume(port->driver));
    if (port->wait == SOCKET_GOES) {
        sw_resume(port->host->sw, port->number);
        port->host->touched = true;
    }
}

/* Ports that stalled lately begin to wait. */
static void note_stalled(struct loop *loop, const struct hosted *host)
{
    for (uint32_t i = 0; i < loop->n_ports; i++) {
        struct loop_port *port = loop->ports[i];
        if (port->host == host && host->sw->ports[port->number]->is_stalled &&
            port->wait == SOCKET_GOES)
            wait_for_room(loop, port, socket_waits(port->driver));
    }
}

/* Try those ports that nobody would tell of; returns when to do so again, wall clock. */
static ns_t retry_all(struct loop *loop)
{
    ns_t next = SW_NEVER;
    for (uint32_t i = 0; loop->n_waiting && i < loop->n_ports; i++) {
        struct loop_port *port = loop->ports[i];
        if (port->wait == SOCKET_RETRY && port->retry <= wall())
            try_again(loop, port);
        if (port->wait == SOCKET_RETRY && port->retry < next)
            next = port->retry;
    }
    return next;
}

static void check_link(struct loop *loop, struct loop_port *port)
{
    sw_set_up(port->host->sw, port->number, socket_check(port->driver), loop_now(loop));
    port->host->touched |= port->wait != SOCKET_GOES; /* if it went down, so does what waits */
    if (port->wait != SOCKET_GOES && socket_waits(port->driver) == SOCKET_GOES)
        try_again(loop, port);
}

/* Whose frames others see: those of an interface on which a socket that is not ours listens, or that has
 * a queueing discipline. They go by the kernel then, and by a short cable otherwise. */

static void see_all(struct loop *loop, bool are_seen)
{
    for (uint32_t i = 0; i < loop->n_ports; i++)
        socket_see(loop->ports[i]->driver, are_seen);
}

static unsigned interface_of(const struct loop_port *port, ino_t *inode)
{
    return socket_interface(port->driver, inode);
}

static int by_interface(const void *a, const void *b)
{
    ino_t inode;
    unsigned one = interface_of(*(struct loop_port *const *)a, &inode);
    unsigned other = interface_of(*(struct loop_port *const *)b, &inode);
    return (one > other) - (one < other);
}

/* Where those of an interface begin among ports that are in this order. */
static uint32_t first_at(const struct loop *loop, unsigned ifindex)
{
    ino_t inode;
    uint32_t first = 0, end = loop->n_ports;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        if (interface_of(loop->ready[middle], &inode) < ifindex)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

static void see_interface(void *context, unsigned ifindex)
{
    const struct loop *loop = context;
    ino_t inode;
    for (uint32_t i = first_at(loop, ifindex);
         i < loop->n_ports && interface_of(loop->ready[i], &inode) == ifindex; i++)
        socket_see(loop->ready[i]->driver, true);
}

static void see_tap(void *context, unsigned protocol, unsigned ifindex, ino_t tap)
{
    struct loop *loop = context;
    ino_t inode;
    (void)protocol;
    for (uint32_t i = first_at(loop, ifindex);
         i < loop->n_ports && interface_of(loop->ready[i], &inode) == ifindex; i++)
        if (inode == tap)
            return; /* our own */
    if (ifindex)
        see_interface(loop, ifindex);
    else
        see_all(loop, true);
}

static void look_for_watchers(struct loop *loop)
{
    if (loop->taps < 0)
        loop->taps = taps_open();
    if (loop->qdiscs < 0)
        loop->qdiscs = qdisc_open();
    see_all(loop, false);
    memcpy(loop->ready, loop->ports, loop->n_ports * sizeof *loop->ready);
    qsort(loop->ready, loop->n_ports, sizeof *loop->ready, by_interface);
    if (loop->taps < 0 || loop->qdiscs < 0 || !qdisc_each(loop->qdiscs, see_interface, loop) ||
        !taps_each(loop->taps, see_tap, loop))
        see_all(loop, true);
}

/* How late a turn may be: not at all if anybody at a link sees frames when they leave. */
static ns_t slack_of(const struct loop *loop)
{
    ns_t slack = SW_NEVER;
    for (uint32_t i = 0; i < loop->n_ports; i++) {
        const struct loop_port *port = loop->ports[i];
        const struct tm_port *link = &port->host->sw->ports[port->number]->tm;
        bool is_waited_for = socket_is_waited_for(port->driver);
        if (link->rate)
            slack = earlier(slack, is_waited_for ? arrival_slack(link->delay, loop->dilation) : 0);
    }
    return is_dilated(loop) && slack != SW_NEVER ? slack : 0;
}

static void check_links(struct loop *loop)
{
    loop->slack = slack_of(loop);
    for (uint32_t i = 0; i < loop->n_ports; i++)
        check_link(loop, loop->ports[i]);
}

static void set_busy(struct loop *loop, struct loop_port *port, bool is_busy)
{
    port->is_busy = is_busy;
    if (!watch(loop, port)) {
        port->is_busy = !is_busy; /* no memory: stay with it */
        return;
    }
    loop->n_busy += is_busy ? 1 : -1u;
}

/* By the wall clock. */
static ns_t real_slack(const struct loop *loop)
{
    return (ns_t)((double)loop->slack * loop->dilation);
}

/* Whether a port is, or has become, busy; it just had `n` frames. */
static bool is_busy(const struct loop *loop, struct loop_port *port, unsigned n, ns_t real)
{
    ns_t slacks = BUSY_SLACKS * real_slack(loop);
    if (port->is_busy)
        return real - port->last < (slacks ? slacks : QUIET_NS);
    if (real - port->since >= (slacks ? slacks : BUSY_NS)) {
        port->since = real;
        port->frames = 0;
    }
    port->frames += n;
    return port->frames >= (slacks ? SLACK_FRAMES : BUSY_FRAMES);
}

static uint32_t late_class(ns_t late)
{
    if (late < 8)
        return (uint32_t)late;
    uint32_t power = 63 - (uint32_t)__builtin_clzll(late);
    return (power - 2) * 8 + (uint32_t)(late >> (power - 3) & 7);
}

ns_t loop_late_floor(uint32_t class)
{
    return class < 8 ? class : (ns_t)(8 + class % 8) << (class / 8 - 1);
}

static void service(struct loop *loop, struct hosted *host, ns_t at)
{
    host->touched = false;
    host->served = at;
    host->sw->due = SW_NEVER;
    host->wake = sw_service(host->sw, at);
    if (host->sw->due != SW_NEVER) {
        ns_t now = loop_now(loop);
        loop->late[late_class(now > host->sw->due ? now - host->sw->due : 0)]++;
    }
    if (SW_UNLIKELY(host->sw->n_stalled != 0))
        note_stalled(loop, host);
}

/* Let a switch do what was due before: each at its own instant, so that it does not matter how late we
 * are. What is still to be done after so many steps is done at once. */
static void catch_up(struct loop *loop, struct hosted *host, ns_t until)
{
    for (unsigned steps = 0; host->wake <= until && steps < STEPS_MAX; steps++)
        service(loop, host, host->wake > host->served ? host->wake : host->served);
    if (host->wake <= until)
        service(loop, host, until);
}

/* Up to so many frames from a port, served at once; how many there were. */
static unsigned take_in(struct loop *loop, struct loop_port *port, unsigned most, ns_t at)
{
    unsigned n = socket_receive(port->driver, port->host->sw, port->number, most, at);
    if (n)
        service(loop, port->host, at);
    return n;
}

static void note_taken(struct loop *loop, struct loop_port *port, unsigned n, ns_t real)
{
    if (n)
        port->last = real;
    if (is_busy(loop, port, n, real) != port->is_busy)
        set_busy(loop, port, !port->is_busy);
}

/* A burst from each port that may have frames: many ports must not fill one queue before it is looked
 * at. True if there were any. */
static bool receive_bursts(struct loop *loop)
{
    bool any = false;
    for (uint32_t i = 0; i < loop->n_ports; i++) {
        struct loop_port *port = loop->ports[i];
        if (!port->has_frames && !port->is_busy)
            continue;
        ns_t real = wall(), now = dilated(loop, real);
        unsigned n = take_in(loop, port, BURST, now);
        port->has_frames = n == BURST;
        any |= n != 0;
        note_taken(loop, port, n, real);
    }
    return any;
}

/* Whether a port's next frame is to be taken in by now; if it waits, until when is noted. */
static bool is_ready(struct loop *loop, struct loop_port *port, ns_t real, ns_t behind)
{
    ns_t came = socket_came(port->driver, real, behind);
    port->has_frames = came != 0;
    if (!came)
        return false;
    port->came = came > loop->origin ? dilated(loop, came) : 0;
    if (came <= real)
        return true;
    loop->due = port->came < loop->due ? port->came : loop->due;
    return false;
}

/* The ports that have frames to be taken in, as many as are returned, are ready. */
static uint32_t find_ready(struct loop *loop, ns_t real, ns_t behind)
{
    uint32_t n = 0;
    loop->due = SW_NEVER;
    for (uint32_t i = 0; i < loop->n_ports; i++) {
        struct loop_port *port = loop->ports[i];
        if (!port->has_frames && !port->is_busy && !port->come->count)
            continue;
        port->taken = 0;
        if (is_ready(loop, port, real, behind))
            loop->ready[n++] = port;
        else
            note_taken(loop, port, 0, real);
    }
    return n;
}

static uint32_t first_to_come(const struct loop *loop, uint32_t n)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < n; i++)
        if (loop->ready[i]->came < loop->ready[first]->came)
            first = i;
    return first;
}

/* Frames of all ports, in the order in which they are due. True if there were any; until when all of
 * them were taken in is told. Those that are not seen yet can wait if a turn may be late. */
static bool receive_in_order(struct loop *loop, ns_t *until)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    ns_t real = wall(), behind = (ns_t)t.tv_sec * 1000000000 + (ns_t)t.tv_nsec - real;
    uint32_t n_left = find_ready(loop, real, behind);
    bool any = n_left != 0;
    for (unsigned turns = 0; n_left && turns < IN_ORDER_MAX; turns++) {
        uint32_t first = first_to_come(loop, n_left);
        struct loop_port *port = loop->ready[first];
        struct hosted *host = port->host;
        ns_t at = port->came > host->served ? port->came : host->served;
        catch_up(loop, host, at);
        port->taken += take_in(loop, port, 1, at);
        if (!is_ready(loop, port, real, behind)) {
            note_taken(loop, port, port->taken, real);
            loop->ready[first] = loop->ready[--n_left];
        }
    }
    *until = n_left ? loop->ready[first_to_come(loop, n_left)]->came : dilated(loop, real);
    for (uint32_t i = 0; i < n_left; i++)
        note_taken(loop, loop->ready[i], loop->ready[i]->taken, real);
    return loop->slack ? n_left != 0 : any;
}

/* When the first of the frames is due that lie in short cables. */
static ns_t next_to_come(const struct loop *loop)
{
    ns_t next = SW_NEVER;
    for (uint32_t i = 0; loop->has_joined && i < loop->n_ports; i++) {
        const struct short_frame *first = short_cable_first(loop->ports[i]->come);
        if (first && first->due < next)
            next = first->due;
    }
    return next == SW_NEVER ? next : next > loop->origin ? dilated(loop, next) : 0;
}

/* Service what was touched, or is due until then; returns when the next one is due. */
static ns_t service_all(struct loop *loop, ns_t until)
{
    ns_t next = SW_NEVER;
    for (uint32_t i = 0; i < loop->n_hosts; i++) {
        struct hosted *host = loop->hosts[i];
        ns_t at = until > host->served ? until : host->served;
        if (is_dilated(loop))
            catch_up(loop, host, at);
        if (host->touched || host->wake <= at)
            service(loop, host, at);
        next = host->wake < next ? host->wake : next;
    }
    return is_dilated(loop) ? earlier(next, earlier(loop->due, next_to_come(loop))) : next;
}

/* How long to sleep, wall clock; 0: not at all. */
static ns_t time_to_sleep(const struct loop *loop, ns_t next)
{
    ns_t now = loop_now(loop);
    next = next == SW_NEVER ? next : next + loop->slack;
    ns_t left = next > now ? next - now : 0;
    double real = next == SW_NEVER ? SLEEP_MAX_NS : (double)left * loop->dilation;
    ns_t most = loop->n_ports ? LINK_CHECK_NS : SLEEP_MAX_NS;
    if (loop->retry != SW_NEVER)
        most = RETRY_NS;
    ns_t wanted = real < (double)most ? (ns_t)real : most;
    return wanted < NEAR_NS ? 0 : wanted;
}

/* What is read does not matter, only that something came. */
static void drain(int fd)
{
    char text[8192];
    ssize_t got;
    do
        got = read(fd, text, sizeof text);
    while (got > 0 || (got < 0 && (errno == ENOBUFS || errno == EINTR)));
}

static void links_changed(struct loop *loop)
{
    drain(loop->links);
    check_links(loop);
    loop->seen_check = 0;
}

/* A port may have gone while we slept. */
static void port_ready(struct loop *loop, const void *which, uint32_t events)
{
    for (uint32_t i = 0; i < loop->n_ports; i++) {
        struct loop_port *port = loop->ports[i];
        if (port != which)
            continue;
        port->has_frames |= (events & ~(uint32_t)EPOLLOUT) != 0;
        if (events & EPOLLOUT)
            try_again(loop, port);
        if (events & EPOLLERR)
            check_link(loop, port);
    }
}

/* Note which ports have frames, after `sleep` at most. */
static void ask_epoll(struct loop *loop, ns_t sleep)
{
    struct epoll_event events[EVENTS];
    struct timespec timeout = {(time_t)(sleep / 1000000000), (long)(sleep % 1000000000)};
    if (sleep)
        pthread_mutex_unlock(&loop->owner);
    /* By its number, for glibc has had a word for it from 2.35 on only. */
    int n = (int)syscall(SYS_epoll_pwait2, loop->epoll, events, EVENTS, &timeout, NULL, 0);
    if (n < 0 && errno != EINTR) { /* older kernels lack it, containers may deny it */
        struct pollfd any = {.fd = loop->epoll, .events = POLLIN};
        ppoll(&any, 1, &timeout, NULL);
        n = epoll_wait(loop->epoll, events, EVENTS, 0);
    }
    if (sleep)
        pthread_mutex_lock(&loop->owner);
    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr == &loop->knock)
            drain(loop->knock);
        else if (events[i].data.ptr == &loop->links)
            links_changed(loop);
        else
            port_ready(loop, events[i].data.ptr, events[i].events);
    }
}

/* See whether others took the core lately. */
static void check_crowd(struct loop *loop, ns_t real)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    uint64_t put_aside = (uint64_t)usage.ru_nivcsw;
    uint64_t checks = (real - loop->crowd_check) / CROWD_CHECK_NS;
    if (put_aside - loop->put_aside >= CROWD_MIN * checks)
        loop->crowded_until = real + CROWDED_NS;
    loop->crowd_check = real;
    loop->put_aside = put_aside;
}

/* There are busy ports, but nothing to do at the moment. */
static void stand_by(struct loop *loop, ns_t next, ns_t real)
{
    if (real - loop->crowd_check >= CROWD_CHECK_NS)
        check_crowd(loop, real);
    ns_t sleep = real < loop->crowded_until ? time_to_sleep(loop, next) : SW_NEVER;
    if (sleep < SLICE_NS)
        ask_epoll(loop, sleep < STEP_ASIDE_NS ? sleep : STEP_ASIDE_NS);
    else
        sched_yield();
}

static void wait_for_work(struct loop *loop, ns_t next, bool had_frames)
{
    if (!had_frames && (!loop->n_busy || loop->slack)) {
        ns_t sleep = time_to_sleep(loop, next);
        ask_epoll(loop, loop->n_busy ? earlier(sleep, real_slack(loop)) : sleep);
        return;
    }
    ns_t real = wall();
    if (real - loop->looked >= SNAPSHOT_NS) {
        loop->looked = real;
        ask_epoll(loop, 0);
    }
    if (!had_frames)
        stand_by(loop, next, real);
}

static void *work(void *context)
{
    struct loop *loop = context;
    prctl(PR_SET_TIMERSLACK, 1000UL);
    prctl(PR_SET_NAME, "dataplane");
    pthread_mutex_lock(&loop->owner);
    while (!__atomic_load_n(&loop->stopping, __ATOMIC_ACQUIRE)) {
        ns_t until = SW_NEVER;
        bool any = is_dilated(loop) ? receive_in_order(loop, &until) : receive_bursts(loop);
        loop->retry = retry_all(loop);
        ns_t real = wall();
        if (real - loop->link_check >= LINK_CHECK_NS) {
            loop->link_check = real;
            check_links(loop);
        }
        if (loop->has_joined && real - loop->seen_check >= SEEN_CHECK_NS) {
            loop->seen_check = real;
            look_for_watchers(loop);
        }
        ns_t now = loop_now(loop);
        ns_t next = service_all(loop, until < now ? until : now);
        open_door(loop, real);
        wait_for_work(loop, next, any);
    }
    pthread_mutex_unlock(&loop->owner);
    return NULL;
}

bool loop_start(struct loop *loop)
{
    if (loop->running)
        return true;
    loop->stopping = false;
    loop->running = pthread_create(&loop->thread, NULL, work, loop) == 0;
    return loop->running;
}

void loop_stop(struct loop *loop)
{
    if (!loop->running)
        return;
    __atomic_store_n(&loop->stopping, true, __ATOMIC_RELEASE);
    knock(loop);
    pthread_join(loop->thread, NULL);
    loop->running = false;
}

void loop_lateness(struct loop *loop, uint64_t counts[LOOP_LATE_CLASSES])
{
    loop_enter(loop);
    memcpy(counts, loop->late, sizeof loop->late);
    memset(loop->late, 0, sizeof loop->late);
    loop_leave(loop, false);
}
