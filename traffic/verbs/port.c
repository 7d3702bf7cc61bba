/* A port: the packet socket, the thread that receives and keeps time, and the pace of the link.
 *
 * The link's own queue and its pauses are the adapter's beneath the interface (core/nic_main.c on a
 * host of the fabric). Here it is only seen to that it is handed no more before its turn than lasts
 * AHEAD_NS, for which this thread may wait for a processor: what is sent later by another queue
 * pair, or again after a loss, stands behind it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "rc.h"

enum {
    AHEAD_NS = 10000000, /* on the machine's clock, */
    AHEAD_MIN = 2, /* if that is so many packets, */
    AHEAD_MAX = 32, /* and no more than these */
    BATCH = 64,
    EVERY_PROTOCOL = 0x0003,
    SOCKET_BUFFER = 32 << 20,
    SLOTS = 255, /* programs on a host at once */
    WIRE_OVERHEAD = 24, /* of a frame, besides its bytes: preamble, checksum, gap */
    NS_PER_MS = 1000000,
};
#define NS_PER_S 1000000000u

ns_t port_now(void)
{
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t); /* the library's may be the fabric's */
    return (ns_t)t.tv_sec * NS_PER_S + (ns_t)t.tv_nsec;
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t number = text ? strtoull(text, NULL, 10) : 0;
    return number ? number : otherwise;
}

static void add_gid(struct ctx *ctx, const struct sockaddr *address)
{
    union ibv_gid gid = {0};
    if (ctx->gid_count == GIDS_MAX)
        return;
    if (address->sa_family == AF_INET) {
        gid.raw[10] = gid.raw[11] = 0xFF;
        memcpy(gid.raw + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
    } else {
        memcpy(gid.raw, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
    }
    ctx->gids[ctx->gid_count++] = gid;
}

/* Addresses of the interface: IPv4's first, as programs prefer them. */
static void read_gids(struct ctx *ctx, const char *interface)
{
    struct ifaddrs *all, *one;
    if (getifaddrs(&all))
        return;
    const int families[] = {AF_INET, AF_INET6};
    for (unsigned i = 0; i < 2; i++)
        for (one = all; one; one = one->ifa_next)
            if (one->ifa_addr && one->ifa_addr->sa_family == families[i] &&
                !strcmp(one->ifa_name, interface))
                add_gid(ctx, one->ifa_addr);
    freeifaddrs(all);
}

/* The interface that was named, or the first that is up and is not the loop. */
static bool choose_interface(char name[IFNAMSIZ])
{
    const char *named = getenv("CLOSLAB_VERBS_INTERFACE");
    struct ifaddrs *all, *one;
    if (named) {
        snprintf(name, IFNAMSIZ, "%s", named);
        return if_nametoindex(name) > 0;
    }
    if (getifaddrs(&all))
        return false;
    for (one = all; one; one = one->ifa_next)
        if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET && one->ifa_flags & IFF_UP &&
            !(one->ifa_flags & IFF_LOOPBACK))
            break;
    if (one)
        snprintf(name, IFNAMSIZ, "%s", one->ifa_name);
    freeifaddrs(all);
    return one;
}

/* Programs on a host share a port: each takes a number of its own, which begins its queue
 * pairs'. */
static bool take_slot(struct ctx *ctx)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (unsigned slot = 1; fd >= 0 && slot <= SLOTS; slot++) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                              "closlab-verbs-%u", slot);
        socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
        if (!bind(fd, (struct sockaddr *)&address, size)) {
            ctx->slot = slot; /* as long as this process lives: nobody closes it */
            ctx->verbs.context.cmd_fd = fd;
            return true;
        }
    }
    if (fd >= 0)
        close(fd);
    return false;
}

/* RoCEv2 of IPv4 without options, or of IPv6, to a queue pair of ours; all else stays outside. */
static bool filter(int fd, unsigned slot)
{
    const unsigned queue_pair = WIRE_UDP + 5; /* from the UDP header on */
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IPV4, 0, 6),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, WIRE_IP_AT + 9),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IP_UDP, 0, 10),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, WIRE_IP_AT + WIRE_IPV4 + 2),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ROCE_PORT, 0, 8),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, WIRE_IP_AT + WIRE_IPV4 + queue_pair),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, slot, 5, 6),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IPV6, 0, 5),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, WIRE_IP_AT + 6),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IP_UDP, 0, 3),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, WIRE_IP_AT + WIRE_IPV6 + queue_pair),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, slot, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0x40000),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return !setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

/* The kernel would answer what it knows no owner of with "port unreachable". */
static int own_port(int family)
{
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1, least = 1;
    struct sockaddr_in6 address = {.sin6_family = (sa_family_t)family,
                                   .sin6_port = htons(ROCE_PORT)};
    socklen_t size = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof address;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (fd < 0 || !bind(fd, (struct sockaddr *)&address, size))
        return fd;
    close(fd); /* another program owns it, which is as good */
    return -1;
}

static bool listen_on(int fd, int ifindex, unsigned slot)
{
    const struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_ifindex = ifindex,
                                        .sll_protocol = htons(EVERY_PROTOCOL)};
    int one = 1, buffer = SOCKET_BUFFER;
    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
    setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer))
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    return filter(fd, slot) && !bind(fd, (const struct sockaddr *)&address, sizeof address);
}

bool port_open(struct ctx *ctx, char *why, size_t room)
{
    char interface[IFNAMSIZ];
    struct ifreq ask = {0};
    ctx->dilation = from_environment("CLOSLAB_DILATION", 1);
    ctx->bps = from_environment("CLOSLAB_LINK_BPS", 100000000000u);
    ctx->tos = (uint8_t)(from_environment("CLOSLAB_VERBS_DSCP", 26) << 2 | 2 /* ECN-capable */);
    if (!choose_interface(interface)) {
        snprintf(why, room, "there is no interface for it: CLOSLAB_VERBS_INTERFACE names one");
        return false;
    }
    ctx->ifindex = (int)if_nametoindex(interface);
    read_gids(ctx, interface);
    shown_addresses(ctx, interface);
    ctx->socket = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    snprintf(ask.ifr_name, sizeof ask.ifr_name, "%s", interface);
    if (ctx->socket < 0 || ioctl(ctx->socket, SIOCGIFHWADDR, &ask)) {
        snprintf(why, room, "no packet socket can be had here: %s", strerror(errno));
        return false;
    }
    memcpy(ctx->mac, ask.ifr_hwaddr.sa_data, 6);
    ctx->mtu = ioctl(ctx->socket, SIOCGIFMTU, &ask) ? 1500 : (uint32_t)ask.ifr_mtu;
    if (!take_slot(ctx)) {
        snprintf(why, room, "%d programs have it open on this host, which is all", SLOTS);
        return false;
    }
    ctx->loop = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (!listen_on(ctx->socket, ctx->ifindex, ctx->slot) ||
        !listen_on(ctx->loop, (int)if_nametoindex("lo"), ctx->slot)) {
        snprintf(why, room, "%s cannot be listened on: %s", interface, strerror(errno));
        return false;
    }
    ctx->own[0] = own_port(AF_INET);
    ctx->own[1] = own_port(AF_INET6);
    ctx->verbs.context.async_fd = eventfd(0, EFD_CLOEXEC);
    ctx->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return ctx->wake >= 0;
}

static ns_t lasts(const struct ctx *ctx, uint64_t bytes)
{
    return (ns_t)((unsigned __int128)bytes * 8 * NS_PER_S * ctx->dilation / ctx->bps);
}

static ns_t ahead(const struct ctx *ctx)
{
    ns_t packet = lasts(ctx, PACKET_MAX), most = ns_least(AHEAD_NS, AHEAD_MAX * packet);
    return most > AHEAD_MIN * packet ? most : AHEAD_MIN * packet;
}

bool port_may_send(struct ctx *ctx, ns_t now)
{
    if (ctx->free_at < now)
        ctx->free_at = now;
    return !ctx->is_blocked && ctx->free_at - now <= ahead(ctx);
}

bool port_send(struct ctx *ctx, uint32_t bytes)
{
    int to = memcmp(ctx->frame, ctx->mac, sizeof ctx->mac) ? ctx->socket : ctx->loop;
    ssize_t sent = send(to, ctx->frame, bytes, MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS)) {
        ctx->is_blocked = true;
        return false;
    }
    ctx->free_at += lasts(ctx, bytes + WIRE_OVERHEAD);
    ctx->counts.port_xmit_packets++;
    ctx->counts.port_xmit_data += bytes / 4;
    return true; /* what the interface refuses is lost, as on a cable that is unplugged */
}

void port_wake(struct ctx *ctx)
{
    uint64_t one = 1;
    if (write(ctx->wake, &one, sizeof one) < 0)
        return; /* it is awake */
}

/* Let every queue pair do what it can; when there will be more to do. */
static ns_t serve(struct ctx *ctx)
{
    ns_t now = port_now(), next = NS_NEVER;
    ctx->is_blocked = false;
    for (uint32_t i = 0; i < ctx->qps_next; i++) {
        uint64_t turn = i + ctx->counts.port_xmit_packets;
        struct qp *qp = ctx->qps[turn % ctx->qps_next];
        if (!qp || !qp_is_able(qp, IBV_QPS_RTR))
            continue;
        responder_send(ctx, qp, now);
        requester_timer(ctx, qp, now);
        requester_send(ctx, qp, now);
        next = ns_least(next, requester_due(qp, now));
    }
    if (!port_may_send(ctx, now)) /* then there may be more, once there is room */
        next = ns_least(next, now + (ctx->is_blocked ? NS_PER_MS : ahead(ctx) / 4));
    return next;
}

static void receive(struct ctx *ctx, int from)
{
    static _Thread_local uint8_t frame[PACKET_MAX];
    for (unsigned n = 0; n < BATCH; n++) {
        ssize_t bytes = recv(from, frame, sizeof frame, MSG_DONTWAIT | MSG_TRUNC);
        if (bytes < 0)
            return;
        if (bytes <= (ssize_t)sizeof frame)
            packet_arrived(ctx, frame, (uint32_t)bytes);
    }
}

static void *run(void *told_ctx)
{
    struct ctx *ctx = told_ctx;
    struct pollfd files[3] = {{.fd = ctx->socket, .events = POLLIN},
                              {.fd = ctx->wake, .events = POLLIN},
                              {.fd = ctx->loop, .events = POLLIN}};
    prctl(PR_SET_TIMERSLACK, 1);
    pthread_mutex_lock(&ctx->lock);
    while (!ctx->stop) {
        uint64_t woken;
        ns_t next = serve(ctx), now = port_now(), left = next <= now ? 0 : next - now;
        pthread_mutex_unlock(&ctx->lock);
        shown_counts(ctx, now, false);
        if (left > NS_PER_S)
            left = NS_PER_S;
        struct timespec limit = {(time_t)(left / NS_PER_S), (long)(left % NS_PER_S)};
        ppoll(files, 3, &limit, NULL);
        if (files[1].revents && read(ctx->wake, &woken, sizeof woken) < 0)
            files[1].revents = 0;
        pthread_mutex_lock(&ctx->lock);
        receive(ctx, ctx->socket);
        receive(ctx, ctx->loop);
    }
    pthread_mutex_unlock(&ctx->lock);
    return NULL;
}

/* Signals are the program's own threads'. */
bool port_start(struct ctx *ctx)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = !pthread_create(&ctx->thread, NULL, run, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void port_close(struct ctx *ctx)
{
    if (ctx->thread) {
        pthread_mutex_lock(&ctx->lock);
        ctx->stop = true;
        pthread_mutex_unlock(&ctx->lock);
        port_wake(ctx);
        pthread_join(ctx->thread, NULL);
        shown_counts(ctx, 0, true);
    }
    const struct ibv_context *context = &ctx->verbs.context;
    const int files[] = {ctx->socket, ctx->loop, ctx->wake, ctx->own[0], ctx->own[1],
                         context->cmd_fd, context->async_fd};
    for (unsigned i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i] > 0)
            close(files[i]);
}
