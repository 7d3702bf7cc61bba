/* AF_PACKET with a TPACKET_V2 ring for receiving; sendmmsg, a BPF program or AF_XDP for sending. */
#define _GNU_SOURCE
#include "port_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "burst_send.h"
#include "hash.h"
#include "kernel_qdisc.h"
#include "short_cable.h"
#include "xdp_send.h"

#define BLOCK_BYTES 65536u /* of the ring: the kernel allocates it in such pieces */
#define SEND_BATCH BURST_MAX
#define CHUNKS 128     /* frames gathered, or with the kernel */
#define BUSY_BATCH 8   /* frames in a batch that make a port a busy one */
#define SLOW_NS 1000000000u /* after a refusal, how long to hand frames over one by one */
#define KEEP_NS 5000000u    /* what a slow interface takes in so long is left to the kernel */
#define KEEP_FRAMES 12      /* and at least so many: it says that there is room at half of it */
#define LOOK_NS 200000000 /* between two looks for whoever wants to see frames go by */
#define QUICK_TRIES 3     /* at as many looks */
#define VLAN_BYTES 4u
#define UNTOLD 4u /* one such part of a ring is for frames of which nobody is told when they are due */
/* Where a frame begins in its slot: at a line of the cache, lest it touch one more. What is between it
 * and the kernel's words is room for a tag. */
#define FRAME_AT 128u
/* The kernel puts a frame's network header here, PACKET_RESERVE bytes added. */
#define NETWORK_AT TPACKET_ALIGN(TPACKET2_HDRLEN + 16)
#define SLOT_HEAD (FRAME_AT + ETH_HLEN + VLAN_BYTES) /* a second tag counts to the payload */

struct socket_port {
    int fd;
    unsigned ifindex;
    ino_t inode;
    char interface[IFNAMSIZ];

    uint8_t *ring, *slot; /* the slot that is filled next */
    size_t ring_bytes;
    uint32_t slot_bytes, per_block, in_block;

    uint8_t *frames; /* to be sent, in chunks */
    uint32_t chunk;
    uint32_t free[CHUNKS], n_free;
    uint32_t gathered[CHUNKS], n;
    struct mmsghdr messages[CHUNKS];
    struct iovec parts[CHUNKS];
    uint8_t *large; /* a frame that fits no chunk, waiting behind those gathered */
    uint32_t large_len;

    enum socket_wait wait;
    ns_t refused, slow_until; /* wall clock: when the kernel last had no room, and was seen to */
    int unsent;               /* bytes of memory that frames in the kernel took then */
    int buffer, buffer_most;  /* bytes of memory they may take */
    int qdisc;                /* see kernel_qdisc.h; opened at need */

    struct arrival_times *in, *out; /* or NULL */
    struct socket_port *far;        /* the cable's other end, if it is here too; see short_cable.h */
    struct short_cable come;        /* what came from there without the kernel */
    ns_t due;                       /* of what went there last */
    bool is_seen; /* by others: frames take the kernel's way */
    uint32_t mtu;
    uint64_t arrivals_seen;
    ns_t came; /* the next frame, CLOCK_MONOTONIC; 0: not known yet */
    ns_t origin;
    double dilation;

    struct burst *burst; /* one of them, or neither */
    struct xdp_tx *xdp;
    unsigned quick_tries;
    bool may_be_quick;
    ns_t looked;           /* wall clock */
    struct port_count lost; /* since the last flush by the switch */
    uint64_t missed;
};

static ns_t wall(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (ns_t)t.tv_sec * 1000000000 + (ns_t)t.tv_nsec;
}

static uint32_t mtu_of(const struct socket_port *port)
{
    struct ifreq request = {0};
    memcpy(request.ifr_name, port->interface, IFNAMSIZ);
    return ioctl(port->fd, SIOCGIFMTU, &request) ? 1500 : (uint32_t)request.ifr_mtu;
}

/* Frames that a peer's stack hands over unfinished cannot be sent on; best effort. */
static void no_offloads(const struct socket_port *port)
{
    static const uint32_t commands[] = {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_STXCSUM};
    for (unsigned i = 0; i < SW_COUNT(commands); i++) {
        struct ethtool_value value = {.cmd = commands[i], .data = 0};
        struct ifreq request = {0};
        memcpy(request.ifr_name, port->interface, IFNAMSIZ);
        request.ifr_data = (char *)&value;
        if (ioctl(port->fd, SIOCETHTOOL, &request))
            continue; /* a driver without it has no such offload */
    }
}

static int open_socket(const char *interface, const char *netns, const char **what)
{
    int home = -1, there = -1, fd = -1;
    if (netns) {
        *what = "open its network namespace";
        home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
        there = open(netns, O_RDONLY | O_CLOEXEC);
        if (home < 0 || there < 0 || setns(there, CLONE_NEWNET))
            goto out;
    }
    *what = "open an AF_PACKET socket (needs root, or a user namespace of its own)";
    fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        *what = "find the interface";
        struct sockaddr_ll address = {.sll_family = AF_PACKET};
        address.sll_ifindex = (int)if_nametoindex(interface);
        if (!address.sll_ifindex) {
            close(fd);
            fd = -1;
            errno = ENODEV;
        }
    }
    if (netns && setns(home, CLONE_NEWNET)) {
        /* The thread is stuck elsewhere: nothing it does from here on can be right. */
        abort();
    }
out:;
    int saved = errno;
    if (home >= 0)
        close(home);
    if (there >= 0)
        close(there);
    errno = saved;
    return fd;
}

static bool find_interface(struct socket_port *port, const char **what)
{
    struct ifreq request = {0};
    struct stat self;
    memcpy(request.ifr_name, port->interface, IFNAMSIZ);
    *what = "find the interface";
    if (fstat(port->fd, &self) || ioctl(port->fd, SIOCGIFINDEX, &request))
        return false;
    port->inode = self.st_ino;
    port->ifindex = (unsigned)request.ifr_ifindex;
    return true;
}

static bool set_options(struct socket_port *port, const char **what)
{
    int version = TPACKET_V2, one = 1;
    socklen_t size = sizeof port->buffer;
    unsigned reserve = FRAME_AT + ETH_HLEN - NETWORK_AT;
    *what = "set up its receive ring";
    if (setsockopt(port->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
        setsockopt(port->fd, SOL_PACKET, PACKET_RESERVE, &reserve, sizeof reserve))
        return false;
    /* Kernels without this show what others send on the interface; socket_receive skips it. */
    setsockopt(port->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
    *what = "ask for its send buffer";
    if (getsockopt(port->fd, SOL_SOCKET, SO_SNDBUF, &port->buffer, &size))
        return false;
    port->buffer_most = port->buffer;
    return true;
}

static void free_chunks(struct socket_port *port)
{
    for (port->n_free = 0; port->n_free < CHUNKS; port->n_free++)
        port->free[port->n_free] = CHUNKS - 1 - port->n_free;
    port->n = 0;
}

/* Memory for frames to send: pages of their own, for AF_XDP may share them with the kernel. */
static bool map_frames(struct socket_port *port)
{
    port->chunk = mtu_of(port) + ETH_HLEN + 2 * VLAN_BYTES <= 2048 ? 2048 : 4096;
    void *frames = mmap(NULL, (size_t)CHUNKS * port->chunk, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (frames == MAP_FAILED)
        return false;
    port->frames = frames;
    free_chunks(port);
    for (unsigned i = 0; i < CHUNKS; i++)
        port->messages[i].msg_hdr =
            (struct msghdr){.msg_iov = &port->parts[i], .msg_iovlen = 1};
    return true;
}

static bool map_ring(struct socket_port *port, bytes_t bytes)
{
    uint32_t most = SW_FRAME_MAX, mtu = mtu_of(port);
    port->slot_bytes = (SLOT_HEAD + (mtu < most ? mtu : most) + 63) / 64 * 64;
    port->per_block = BLOCK_BYTES / port->slot_bytes;
    struct tpacket_req request = {.tp_block_size = BLOCK_BYTES, .tp_frame_size = port->slot_bytes};
    for (; bytes >= BLOCK_BYTES; bytes /= 2) {
        request.tp_block_nr = (unsigned)(bytes / BLOCK_BYTES);
        request.tp_frame_nr = request.tp_block_nr * port->per_block;
        if (setsockopt(port->fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request) == 0)
            break;
        if (errno != ENOMEM)
            return false;
    }
    port->ring_bytes = (size_t)request.tp_block_nr * BLOCK_BYTES;
    void *ring = mmap(NULL, port->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, port->fd, 0);
    if (ring == MAP_FAILED)
        return false;
    port->ring = port->slot = ring;
    return true;
}

static bool hear(const struct socket_port *port)
{
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET,
        .sll_protocol = __builtin_bswap16(ETH_P_ALL),
        .sll_ifindex = (int)port->ifindex,
    };
    struct packet_mreq promiscuous = {.mr_ifindex = (int)port->ifindex,
                                      .mr_type = PACKET_MR_PROMISC};
    return !bind(port->fd, (struct sockaddr *)&address, sizeof address) &&
           !setsockopt(port->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous,
                       sizeof promiscuous);
}

bool socket_start(struct socket_port *port, bytes_t ring_bytes)
{
    if (!map_ring(port, ring_bytes) || !hear(port))
        return false;
    uint32_t slots = (uint32_t)(port->ring_bytes / BLOCK_BYTES) * port->per_block;
    if (port->in)
        arrival_read(port->in, &port->arrivals_seen, slots - slots / UNTOLD);
    return true;
}

static void *close_socket(void *fd)
{
    close((int)(intptr_t)fd);
    return NULL;
}

/* Closing a packet socket waits until no core can be in it any more, tens of milliseconds. A
 * fabric closes a hundred, and the data plane has no time for even one: they go in parallel. */
static void close_aside(int fd)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, close_socket, (void *)(intptr_t)fd))
        close(fd);
    else
        pthread_detach(thread);
}

/* Its cable leads elsewhere from now on: no frame goes by memory any more. */
static void part(struct socket_port *port)
{
    if (port->far)
        port->far->far = NULL;
    port->far = NULL;
}

void socket_close(void *driver)
{
    struct socket_port *port = driver;
    part(port);
    short_cable_free(&port->come);
    burst_close(port->burst);
    xdp_close(port->xdp);
    if (port->ring)
        munmap(port->ring, port->ring_bytes);
    if (port->frames)
        munmap(port->frames, (size_t)CHUNKS * port->chunk);
    free(port->large);
    if (port->qdisc >= 0)
        close(port->qdisc);
    if (port->fd >= 0)
        close_aside(port->fd);
    free(port);
}

/* The name of the interface that a socket is bound to. */
static bool name_of(int fd, char *name)
{
    struct sockaddr_ll address;
    socklen_t size = sizeof address;
    struct ifreq request = {0};
    if (getsockname(fd, (struct sockaddr *)&address, &size) || !address.sll_ifindex)
        return false;
    request.ifr_ifindex = address.sll_ifindex;
    if (ioctl(fd, SIOCGIFNAME, &request))
        return false;
    memcpy(name, request.ifr_name, IFNAMSIZ);
    return true;
}

struct socket_port *socket_open(const char *interface, const char *netns, int fd,
                                const char **what)
{
    struct socket_port *port = calloc(1, sizeof *port);
    *what = "find memory";
    if (!port)
        return NULL;
    port->qdisc = -1;
    port->is_seen = true;
    port->fd = fd >= 0 ? fd : open_socket(interface, netns, what);
    bool ok = port->fd >= 0;
    if (ok && interface)
        strncpy(port->interface, interface, IFNAMSIZ - 1);
    else if (ok) {
        *what = "find the interface of the socket: bind it first";
        ok = name_of(port->fd, port->interface);
    }
    ok = ok && find_interface(port, what) && set_options(port, what) && map_frames(port);
    if (ok) {
        no_offloads(port);
        return port;
    }
    int saved = errno;
    if (fd >= 0)
        port->fd = -1; /* stays the caller's */
    socket_close(port);
    errno = saved;
    return NULL;
}

int socket_fd(const struct socket_port *port) { return port->fd; }

/* Sending */

/* Open what has to be opened in the network namespace that the port's socket lives in, which may be the
 * thread's: its quick way out, or what asks for its queueing discipline. */
static void open_there(struct socket_port *port, void (*open_it)(struct socket_port *, bool is_home))
{
    struct stat ours, theirs;
    int there = ioctl(port->fd, SIOCGSKNS);
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (there >= 0 && home >= 0 && fstat(there, &theirs) == 0 && fstat(home, &ours) == 0) {
        bool is_home = ours.st_ino == theirs.st_ino;
        if (is_home || setns(there, CLONE_NEWNET) == 0) {
            open_it(port, is_home);
            if (!is_home && setns(home, CLONE_NEWNET))
                abort(); /* the thread is stuck elsewhere: nothing it does from here on is right */
        }
    }
    if (there >= 0)
        close(there);
    if (home >= 0)
        close(home);
}

static void open_qdisc(struct socket_port *port, bool is_home)
{
    (void)is_home;
    if (port->qdisc < 0)
        port->qdisc = qdisc_open();
}

static void open_quick(struct socket_port *port, bool is_home)
{
    open_qdisc(port, is_home);
    if (port->qdisc >= 0 && is_home)
        port->burst = burst_open(port->ifindex, port->frames, port->chunk, CHUNKS);
    if (port->qdisc >= 0 && !port->burst)
        port->xdp = xdp_open(port->ifindex, port->qdisc, port->frames, port->chunk, CHUNKS);
}

static void close_quick(struct socket_port *port)
{
    burst_close(port->burst);
    port->burst = NULL;
    xdp_close(port->xdp);
    port->xdp = NULL;
    port->may_be_quick = false;
}

/* Whether a batch may take the quick way. Asked for busy ports only: others have no need of it,
 * and no cost from it. */
static bool is_quick(struct socket_port *port)
{
    ns_t now = wall(CLOCK_MONOTONIC_COARSE);
    if (now - port->looked >= LOOK_NS) {
        port->looked = now;
        /* The socket of a port that was closed a moment ago may still hold the interface. */
        if (!port->burst && !port->xdp && port->quick_tries++ < QUICK_TRIES)
            open_there(port, open_quick);
        port->may_be_quick = port->burst ? !qdisc_ask(port->qdisc, port->ifindex).is_there
                                         : port->xdp && xdp_is_unwatched(port->xdp, port->inode);
    }
    return port->may_be_quick;
}

static void flush_by_xdp(struct socket_port *port)
{
    for (uint32_t i = 0; i < port->n; i++)
        xdp_put(port->xdp, port->gathered[i], (uint32_t)port->parts[i].iov_len);
    port->n = 0;
    xdp_kick(port->xdp, &port->lost);
    port->n_free += xdp_reap(port->xdp, port->free + port->n_free, CHUNKS - port->n_free);
}

static void lose(struct socket_port *port, size_t len)
{
    port->lost.packets++;
    port->lost.bytes += len;
}

/* The queueing discipline dropped a frame, and has others: its queue was full. */
static bool is_backlogged(struct socket_port *port)
{
    if (port->qdisc < 0)
        open_there(port, open_qdisc);
    return port->qdisc >= 0 && qdisc_ask(port->qdisc, port->ifindex).waiting > 0;
}

/* Why the kernel refused a frame, by errno: SOCKET_GOES if it never will take it, because nobody is
 * at the other end, the interface is down, or the frame is larger than the MTU. */
static enum socket_wait why_refused(struct socket_port *port)
{
    enum socket_wait why = SOCKET_GOES;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        why = SOCKET_POLL;
    else if (errno == ENOBUFS && is_backlogged(port))
        why = SOCKET_RETRY;
    if (why == SOCKET_GOES)
        return why;
    port->refused = wall(CLOCK_MONOTONIC);
    port->slow_until = port->refused + SLOW_NS;
    if (ioctl(port->fd, SIOCOUTQ, &port->unsent))
        port->unsent = 0;
    return why;
}

/* The kernel has room again: let it keep what the interface takes in KEEP_NS, for all else shall
 * wait where the program sees it. What it keeps by default is seconds of a slow interface. */
static void fit_buffer(struct socket_port *port)
{
    int left, least = KEEP_FRAMES * (int)port->slot_bytes;
    ns_t took = wall(CLOCK_MONOTONIC) - port->refused;
    if (ioctl(port->fd, SIOCOUTQ, &left) || left >= port->unsent || !took)
        return;
    double fits = (double)(port->unsent - left) / (double)took * KEEP_NS;
    int wanted = fits < least ? least : fits < INT32_MAX ? (int)fits : INT32_MAX;
    wanted = wanted < port->buffer_most ? wanted : port->buffer_most;
    int half = wanted / 2; /* the kernel doubles what it is told */
    if (wanted != port->buffer &&
        setsockopt(port->fd, SOL_SOCKET, SO_SNDBUF, &half, sizeof half) == 0)
        port->buffer = wanted;
}

static bool is_slow(const struct socket_port *port)
{
    return SW_UNLIKELY(port->slow_until != 0) && wall(CLOCK_MONOTONIC_COARSE) < port->slow_until;
}

/* The first `n` of those gathered have left, one way or another. */
static void forget_gathered(struct socket_port *port, uint32_t n)
{
    for (uint32_t i = n; i-- > 0;)
        port->free[port->n_free++] = port->gathered[i];
    port->n -= n;
    memmove(port->gathered, port->gathered + n, port->n * sizeof *port->gathered);
    memmove(port->parts, port->parts + n, port->n * sizeof *port->parts);
}

static void send_by_socket(struct socket_port *port)
{
    uint32_t at = 0;
    while (at < port->n && port->wait == SOCKET_GOES) {
        int sent = sendmmsg(port->fd, port->messages + at, port->n - at, MSG_DONTWAIT);
        if (sent > 0)
            at += (uint32_t)sent;
        else if (errno != EINTR && (port->wait = why_refused(port)) == SOCKET_GOES)
            lose(port, port->parts[at++].iov_len);
    }
    forget_gathered(port, at);
}

static bool send_one(struct socket_port *port, const uint8_t *frame, uint32_t len)
{
    if (send(port->fd, frame, len, MSG_DONTWAIT) >= 0)
        return true;
    port->wait = why_refused(port);
    return false;
}

/* Hand over what is gathered, in order; what the kernel has no room for stays. */
static void send_gathered(struct socket_port *port)
{
    port->wait = SOCKET_GOES;
    bool quick = port->n >= BUSY_BATCH && is_quick(port);
    if (port->xdp && (quick || xdp_in_line(port->xdp))) {
        flush_by_xdp(port);
        if (xdp_in_line(port->xdp))
            port->wait = SOCKET_RETRY;
    } else if (quick && burst_send(port->burst, port->parts, port->n, &port->lost)) {
        forget_gathered(port, port->n);
    } else if (port->n) {
        send_by_socket(port);
    }
    if (port->large_len && port->wait == SOCKET_GOES) {
        if (!send_one(port, port->large, port->large_len) && port->wait == SOCKET_GOES)
            lose(port, port->large_len);
        if (port->wait == SOCKET_GOES)
            port->large_len = 0;
    }
}

static struct port_count waiting_in(const struct socket_port *port)
{
    struct port_count waiting = port->xdp ? xdp_waiting(port->xdp) : (struct port_count){0, 0};
    waiting.packets += port->n + (port->large_len > 0);
    waiting.bytes += port->large_len;
    for (uint32_t i = 0; i < port->n; i++)
        waiting.bytes += port->parts[i].iov_len;
    return waiting;
}

static struct port_left socket_flush(void *driver)
{
    struct socket_port *port = driver;
    struct port_left left = {{0, 0}, {0, 0}};
    if (port->wait == SOCKET_GOES)
        send_gathered(port);
    if (SW_UNLIKELY(port->wait != SOCKET_GOES))
        left.waiting = waiting_in(port);
    left.lost = port->lost;
    port->lost = (struct port_count){0, 0};
    return left;
}

static bool socket_full(const void *driver)
{
    return ((const struct socket_port *)driver)->wait != SOCKET_GOES;
}

enum socket_wait socket_waits(const struct socket_port *port) { return port->wait; }

enum socket_wait socket_resume(struct socket_port *port)
{
    if (port->wait == SOCKET_POLL)
        fit_buffer(port);
    send_gathered(port);
    return port->wait;
}

/* For frames larger than a chunk, and while whoever has the chunks does not give them back. */
static bool send_now(struct socket_port *port, const uint8_t *frame, uint32_t len)
{
    send_gathered(port);
    if (port->wait == SOCKET_GOES) {
        if (send_one(port, frame, len))
            return true;
        if (port->wait == SOCKET_GOES)
            return false;
    }
    uint8_t *room = realloc(port->large, len);
    if (!room)
        return false;
    port->large = room;
    memcpy(port->large, frame, len);
    port->large_len = len;
    return true;
}

static bool goes_short(const struct socket_port *port, uint32_t len)
{
    const struct socket_port *far = port->far;
    uint32_t mtu = port->mtu < far->mtu ? port->mtu : far->mtu;
    return !port->is_seen && !far->is_seen && len <= mtu + ETH_HLEN;
}

static bool socket_send(void *driver, const uint8_t *frame, uint32_t len, ns_t when)
{
    struct socket_port *port = driver;
    ns_t due = port->origin + (ns_t)((double)when * port->dilation);
    if (SW_UNLIKELY(port->wait != SOCKET_GOES))
        return false;
    if (port->far) /* two ways, one order */
        due = port->due = due > port->due ? due : port->due + 1;
    if (port->far && goes_short(port, len) && short_cable_put(&port->far->come, frame, len, due))
        return true;
    if (arrival_times_are_read(port->out))
        arrival_note(port->out, frame, len, due);
    if (port->n == SEND_BATCH || !port->n_free)
        send_gathered(port);
    if (SW_UNLIKELY(len > port->chunk || !port->n_free))
        return send_now(port, frame, len);
    uint32_t chunk = port->free[--port->n_free];
    uint8_t *to = port->frames + (size_t)chunk * port->chunk;
    memcpy(to, frame, len);
    port->parts[port->n] = (struct iovec){to, len};
    port->gathered[port->n++] = chunk;
    if (is_slow(port) && port->wait == SOCKET_GOES)
        send_gathered(port);
    return true;
}

/* IFF_RUNNING follows the carrier after a while only, or never if nobody asks: a veth whose ends
 * have the same index, in two namespaces, was seen without it for good. This asks. */
static bool has_carrier(const struct socket_port *port)
{
    struct ethtool_value value = {.cmd = ETHTOOL_GLINK};
    struct ifreq request = {0};
    memcpy(request.ifr_name, port->interface, IFNAMSIZ);
    request.ifr_data = (char *)&value;
    return ioctl(port->fd, SIOCETHTOOL, &request) == 0 && value.data;
}

bool socket_check(struct socket_port *port)
{
    struct ifreq request = {0};
    memcpy(request.ifr_name, port->interface, IFNAMSIZ);
    /* An interface that goes down leaves an error, and epoll reports it until it is fetched. */
    int error;
    socklen_t size = sizeof error;
    getsockopt(port->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (ioctl(port->fd, SIOCGIFINDEX, &request))
        return false;
    if ((unsigned)request.ifr_ifindex != port->ifindex) {
        struct port_count gone = waiting_in(port);
        port->lost.packets += gone.packets;
        port->lost.bytes += gone.bytes;
        port->large_len = 0;
        port->wait = SOCKET_GOES;
        close_quick(port);
        port->quick_tries = 0;
        free_chunks(port);
        port->ifindex = (unsigned)request.ifr_ifindex;
        part(port); /* it may be another cable */
        if (!hear(port))
            return false;
    }
    port->mtu = mtu_of(port);
    if (ioctl(port->fd, SIOCGIFFLAGS, &request) || !(request.ifr_flags & IFF_UP))
        return false;
    return (request.ifr_flags & IFF_RUNNING) || has_carrier(port);
}

static uint64_t socket_missed(void *driver)
{
    struct socket_port *port = driver;
    struct tpacket_stats fresh; /* since the last call */
    socklen_t size = sizeof fresh;
    if (getsockopt(port->fd, SOL_PACKET, PACKET_STATISTICS, &fresh, &size) == 0)
        port->missed += fresh.tp_drops;
    return port->missed;
}

bool socket_is_waited_for(const struct socket_port *port) { return arrival_times_are_read(port->out); }

static bool socket_has_room_beyond(const void *driver)
{
    return arrival_has_room(((const struct socket_port *)driver)->out);
}

void socket_tell_arrival_times(struct socket_port *port, struct arrival_times *in, struct arrival_times *out)
{
    port->in = in;
    port->out = out;
}

void socket_set_clock(struct socket_port *port, ns_t origin, double dilation)
{
    port->origin = origin;
    port->dilation = dilation;
}

/* Whether a port's socket lives in the network namespace of the calling thread. */
static bool is_home(const struct socket_port *port)
{
    struct stat ours, theirs;
    int there = ioctl(port->fd, SIOCGSKNS);
    bool is_known = there >= 0 && !fstat(there, &theirs) && !stat("/proc/thread-self/ns/net", &ours);
    if (there >= 0)
        close(there);
    return is_known && ours.st_ino == theirs.st_ino;
}

bool socket_join(struct socket_port *port, struct socket_port *other)
{
    bool is_cable = port->in && port->out && port->in == other->out && port->out == other->in;
    if (!is_cable || port == other || port->far || other->far || !is_home(port) || !is_home(other))
        return false;
    port->far = other;
    other->far = port;
    return true;
}

unsigned socket_interface(const struct socket_port *port, ino_t *inode)
{
    *inode = port->inode;
    return port->ifindex;
}

void socket_see(struct socket_port *port, bool is_seen) { port->is_seen = is_seen; }

const struct short_cable *socket_short_cable(const struct socket_port *port) { return &port->come; }

static const struct port_ops socket_ops = {
    .send = socket_send,
    .flush = socket_flush,
    .full = socket_full,
    .is_waited_for = socket_has_room_beyond,
    .missed = socket_missed,
    .close = socket_close,
};

bool socket_attach(struct sw *sw, uint32_t number, struct socket_port *port)
{
    return sw_attach(sw, number, &socket_ops, port);
}

/* Receiving */

/* Put the tag back between the addresses and the type; four bytes before the frame are ours. */
static uint8_t *restore_vlan(uint8_t *frame, const struct tpacket2_hdr *head)
{
    uint16_t protocol = ETH_P_8021Q;
    if (head->tp_status & TP_STATUS_VLAN_TPID_VALID)
        protocol = head->tp_vlan_tpid;
    memmove(frame - VLAN_BYTES, frame, 2 * ETH_ALEN);
    frame -= VLAN_BYTES;
    be_store(frame + 2 * ETH_ALEN, 2, protocol);
    be_store(frame + 2 * ETH_ALEN + 2, 2, head->tp_vlan_tci);
    return frame;
}

/* Finish a checksum that was left to hardware: TCP or UDP, over IPv4 or IPv6. */
static void finish_checksum(uint8_t *frame, uint32_t len)
{
    uint32_t at = 2 * ETH_ALEN;
    uint64_t type = be_load(frame + at, 2), sum;
    for (; type == ETH_P_8021Q || type == ETH_P_8021AD; type = be_load(frame + at, 2)) {
        at += VLAN_BYTES;
        if (at + 2 > len)
            return;
    }
    uint8_t *ip = frame + at + 2, *l4;
    uint32_t left = len - at - 2, size;
    uint8_t protocol;
    if (type == ETH_P_IP && left >= 20) {
        uint32_t header = (ip[0] & 15u) * 4;
        size = (uint32_t)be_load(ip + 2, 2);
        if (header < 20 || size < header || size > left)
            return;
        l4 = ip + header;
        size -= header;
        protocol = ip[9];
        sum = hash_sum16(ip + 12, 8);
    } else if (type == ETH_P_IPV6 && left >= 40) {
        size = (uint32_t)be_load(ip + 4, 2);
        if (size > left - 40)
            return;
        l4 = ip + 40;
        protocol = ip[6];
        sum = hash_sum16(ip + 8, 32);
    } else {
        return;
    }
    uint32_t place = protocol == 6 ? 16 : 6;
    if ((protocol != 6 && protocol != 17) || size < place + 2)
        return;
    be_store(l4 + place, 2, 0);
    uint64_t value = hash_fold16(sum + protocol + size + hash_sum16(l4, size));
    be_store(l4 + place, 2, protocol == 17 && !value ? 0xffff : value);
}

static void next_slot(struct socket_port *port)
{
    port->slot += port->slot_bytes;
    if (++port->in_block < port->per_block)
        return;
    port->in_block = 0;
    port->slot += BLOCK_BYTES - port->per_block * port->slot_bytes;
    if (port->slot == port->ring + port->ring_bytes)
        port->slot = port->ring;
}

/* Its frame may be as long as the one before. */
static void prefetch_slot(const uint8_t *slot, uint32_t len)
{
    for (uint32_t at = 0; at < SLOT_HEAD + len; at += 64)
        __builtin_prefetch(slot + at);
}

static void receive_one(struct sw *sw, uint32_t number, struct tpacket2_hdr *head, ns_t now)
{
    uint8_t *frame = (uint8_t *)head + head->tp_mac;
    uint32_t len = head->tp_snaplen;
    if (SW_UNLIKELY(len < head->tp_len)) { /* cut off by the ring */
        sw_refuse(sw, number, frame, len, head->tp_len - len, DROP_OVERSIZE);
        return;
    }
    if (SW_UNLIKELY(head->tp_status & TP_STATUS_VLAN_VALID)) {
        frame = restore_vlan(frame, head);
        len += VLAN_BYTES;
    }
    if (SW_UNLIKELY(head->tp_status & TP_STATUS_CSUMNOTREADY))
        finish_checksum(frame, len);
    sw_receive(sw, number, frame, len, now);
}

/* The same of what came by the kernel. */
static ns_t came_by_ring(struct socket_port *port, ns_t real, ns_t behind)
{
    const struct tpacket2_hdr *head = (const void *)port->slot;
    if (port->came)
        return port->came;
    if (!(__atomic_load_n(&head->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
        return 0;
    if (port->in)
        port->came = arrival_find(port->in, &port->arrivals_seen, (const uint8_t *)head + head->tp_mac,
                               head->tp_snaplen);
    if (!port->came) {
        ns_t stamp = (ns_t)head->tp_sec * 1000000000 + head->tp_nsec;
        port->came = stamp < behind + real ? stamp - behind : real; /* unless a clock was set */
    }
    return port->came;
}

/* The frame of the short cable, if it is due before that of the ring. */
static const struct short_frame *first_is_short(const struct socket_port *port)
{
    const struct short_frame *first = short_cable_first(&port->come);
    return first && (!port->came || first->due <= port->came) ? first : NULL;
}

ns_t socket_came(struct socket_port *port, ns_t real, ns_t behind)
{
    ns_t came = came_by_ring(port, real, behind);
    const struct short_frame *first = first_is_short(port);
    return first ? first->due : came;
}

unsigned socket_receive(struct socket_port *port, struct sw *sw, uint32_t number, unsigned most,
                        ns_t now)
{
    const struct short_frame *first = first_is_short(port);
    unsigned n = 0;
    if (first) {
        sw_receive(sw, number, (const uint8_t *)(first + 1), first->len, now);
        short_cable_drop(&port->come);
        return 1;
    }
    for (; n < most; n++) {
        struct tpacket2_hdr *head = (void *)port->slot;
        if (!(__atomic_load_n(&head->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
            break;
        next_slot(port);
        port->came = 0;
        prefetch_slot(port->slot, head->tp_snaplen);
        const struct sockaddr_ll *from = (void *)((uint8_t *)head + TPACKET_ALIGN(sizeof *head));
        if (SW_LIKELY(from->sll_pkttype != PACKET_OUTGOING))
            receive_one(sw, number, head, now);
        __atomic_store_n(&head->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    }
    return n;
}
