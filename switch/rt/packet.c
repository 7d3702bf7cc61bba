/* AF_PACKET with a TPACKET_V2 ring for receiving and sendmmsg for sending. */
#define _GNU_SOURCE
#include "packet.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hash.h"

#define RING_BYTES (1u << 20)
#define SEND_BATCH 64
#define SEND_BYTES (256u << 10) /* of frames gathered before they must go */
#define VLAN_BYTES 4u
#define SLOT_LEAST 2048u

struct packet_port {
    int fd;
    char interface[IFNAMSIZ];
    uint8_t *ring;
    uint32_t slot, slots, next;
    uint8_t *gathered; /* frames to send, one behind the other */
    uint32_t used, n;
    struct mmsghdr messages[SEND_BATCH];
    struct iovec parts[SEND_BATCH];
};

static uint32_t slot_for(const struct packet_port *port)
{
    struct ifreq request = {0};
    memcpy(request.ifr_name, port->interface, IFNAMSIZ);
    uint32_t mtu = ioctl(port->fd, SIOCGIFMTU, &request) ? 1500 : (uint32_t)request.ifr_mtu;
    uint32_t need = mtu + ETH_HLEN + 2 * VLAN_BYTES + TPACKET2_HDRLEN + 32;
    uint32_t slot = SLOT_LEAST;
    while (slot < need && slot < 65536)
        slot *= 2;
    return slot;
}

/* Frames that a peer's stack hands over unfinished cannot be sent on; best effort. */
static void no_offloads(const struct packet_port *port)
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

static bool bind_to(struct packet_port *port, const char **what)
{
    struct ifreq request = {0};
    memcpy(request.ifr_name, port->interface, IFNAMSIZ);
    *what = "find the interface";
    if (ioctl(port->fd, SIOCGIFINDEX, &request))
        return false;
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET,
        .sll_protocol = __builtin_bswap16(ETH_P_ALL),
        .sll_ifindex = request.ifr_ifindex,
    };
    *what = "bind to the interface";
    if (bind(port->fd, (struct sockaddr *)&address, sizeof address))
        return false;
    struct packet_mreq promiscuous = {.mr_ifindex = request.ifr_ifindex,
                                      .mr_type = PACKET_MR_PROMISC};
    *what = "hear every frame of the interface";
    return !setsockopt(port->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous,
                       sizeof promiscuous);
}

static bool map_ring(struct packet_port *port, const char **what)
{
    int version = TPACKET_V2, one = 1;
    unsigned reserve = VLAN_BYTES;
    *what = "set up its receive ring";
    if (setsockopt(port->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
        setsockopt(port->fd, SOL_PACKET, PACKET_RESERVE, &reserve, sizeof reserve))
        return false;
    /* Kernels without these show what others send on the interface; packet_receive skips it. */
    setsockopt(port->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
    setsockopt(port->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one);
    int buffer = 4 << 20;
    if (setsockopt(port->fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer))
        setsockopt(port->fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    port->slot = slot_for(port);
    port->slots = RING_BYTES / port->slot;
    struct tpacket_req request = {
        .tp_block_size = port->slot < 65536 ? 65536 : port->slot,
        .tp_frame_size = port->slot,
    };
    request.tp_block_nr = RING_BYTES / request.tp_block_size;
    request.tp_frame_nr = port->slots;
    if (setsockopt(port->fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request))
        return false;
    *what = "map its receive ring";
    port->ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, port->fd, 0);
    if (port->ring == MAP_FAILED)
        port->ring = NULL;
    return port->ring != NULL;
}

static void packet_close(void *driver)
{
    struct packet_port *port = driver;
    if (port->ring)
        munmap(port->ring, RING_BYTES);
    if (port->fd >= 0)
        close(port->fd);
    free(port->gathered);
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

struct packet_port *packet_open(const char *interface, const char *netns, int fd,
                                const char **what)
{
    struct packet_port *port = calloc(1, sizeof *port);
    *what = "find memory";
    if (!port)
        return NULL;
    port->fd = fd >= 0 ? fd : open_socket(interface, netns, what);
    bool ok = port->fd >= 0;
    if (ok && interface)
        strncpy(port->interface, interface, IFNAMSIZ - 1);
    else if (ok) {
        *what = "find the interface of the socket: bind it first";
        ok = name_of(port->fd, port->interface);
    }
    port->gathered = ok ? malloc(SEND_BYTES) : NULL;
    ok = port->gathered && map_ring(port, what) && bind_to(port, what);
    if (ok) {
        no_offloads(port);
        for (unsigned i = 0; i < SEND_BATCH; i++) {
            port->messages[i].msg_hdr.msg_iov = &port->parts[i];
            port->messages[i].msg_hdr.msg_iovlen = 1;
        }
        return port;
    }
    int saved = errno;
    if (fd >= 0)
        port->fd = -1; /* stays the caller's */
    packet_close(port);
    errno = saved;
    return NULL;
}

int packet_fd(const struct packet_port *port) { return port->fd; }

bool packet_is_up(const struct packet_port *port)
{
    struct ifreq request = {0};
    memcpy(request.ifr_name, port->interface, IFNAMSIZ);
    if (ioctl(port->fd, SIOCGIFFLAGS, &request))
        return false;
    return (request.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

/* Sending */

static void packet_flush(void *driver)
{
    struct packet_port *port = driver;
    for (uint32_t at = 0; at < port->n;) {
        int sent = sendmmsg(port->fd, port->messages + at, port->n - at, 0);
        if (sent < 0 && errno == EINTR)
            continue;
        /* A frame the kernel refuses (queue full, interface down) is lost, as on a wire. */
        at += sent > 0 ? (uint32_t)sent : 1;
    }
    port->n = port->used = 0;
}

static bool packet_send(void *driver, const uint8_t *frame, uint32_t len, ns_t when)
{
    struct packet_port *port = driver;
    (void)when;
    if (port->n == SEND_BATCH || port->used + len > SEND_BYTES)
        packet_flush(port);
    memcpy(port->gathered + port->used, frame, len);
    port->parts[port->n++] = (struct iovec){port->gathered + port->used, len};
    port->used += (len + 63) / 64 * 64;
    return true;
}

static const struct port_ops packet_ops = {
    .send = packet_send,
    .flush = packet_flush,
    .close = packet_close,
};

bool packet_attach(struct sw *sw, uint32_t number, struct packet_port *port)
{
    return sw_attach(sw, number, &packet_ops, port);
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
    while (at + 4 <= len && (be_load(frame + at, 2) == ETH_P_8021Q || be_load(frame + at, 2) == ETH_P_8021AD))
        at += 4;
    if (at + 2 > len)
        return;
    uint64_t type = be_load(frame + at, 2), sum;
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

unsigned packet_receive(struct packet_port *port, struct sw *sw, uint32_t number, unsigned most,
                        ns_t now)
{
    unsigned n = 0;
    for (; n < most; n++) {
        struct tpacket2_hdr *head = (void *)(port->ring + (size_t)port->next * port->slot);
        uint32_t status = __atomic_load_n(&head->tp_status, __ATOMIC_ACQUIRE);
        if (!(status & TP_STATUS_USER))
            break;
        const struct sockaddr_ll *from = (void *)((uint8_t *)head + TPACKET_ALIGN(sizeof *head));
        uint8_t *frame = (uint8_t *)head + head->tp_mac;
        uint32_t len = head->tp_snaplen;
        if (from->sll_pkttype != PACKET_OUTGOING) {
            if (SW_UNLIKELY(status & TP_STATUS_VLAN_VALID)) {
                frame = restore_vlan(frame, head);
                len += VLAN_BYTES;
            }
            if (SW_UNLIKELY(status & TP_STATUS_CSUMNOTREADY))
                finish_checksum(frame, len);
            if (SW_UNLIKELY(head->tp_snaplen < head->tp_len))
                len = SW_FRAME_MOST + 1; /* cut off by the ring: to be counted, not forwarded */
            sw_receive(sw, number, frame, len, now);
        }
        __atomic_store_n(&head->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
        port->next = port->next + 1 == port->slots ? 0 : port->next + 1;
    }
    return n;
}
