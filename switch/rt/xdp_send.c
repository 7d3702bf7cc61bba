/* AF_XDP sockets, by system calls alone. */
#define _GNU_SOURCE
#include "xdp_send.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_xdp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel_qdisc.h"
#include "taps.h"

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif
#define TX_BUDGET_OPTION 9 /* XDP_MAX_TX_SKB_BUDGET, since Linux 6.17: frames sent per call */
#define FILL_ENTRIES 2     /* a receive queue's worth is demanded, though nothing is received */
#define KICKS_MAX 64      /* calls for one batch; older kernels send 16 or 32 frames a call */

struct ring { /* shared with the kernel; indices run freely and wrap */
    uint32_t *produced, *consumed;
    void *entries;
    uint32_t mask;
    void *map;
    size_t map_size;
};

struct xdp_tx {
    int fd;
    int qdisc; /* see kernel_qdisc.h; the caller's */
    int taps;  /* the list of packet sockets */
    unsigned ifindex;
    uint32_t chunk;
    uint32_t put; /* produced so far, published by xdp_kick */
    struct ring tx, done, fill;
};

static uint32_t get(const uint32_t *index) { return __atomic_load_n(index, __ATOMIC_ACQUIRE); }
static void set(uint32_t *index, uint32_t to) { __atomic_store_n(index, to, __ATOMIC_RELEASE); }

static bool set_option(int fd, int option, uint32_t value)
{
    return setsockopt(fd, SOL_XDP, option, &value, sizeof value) == 0;
}

static bool map_ring(struct ring *ring, int fd, const struct xdp_ring_offset *offset, uint32_t n,
                     size_t entry, off_t page)
{
    ring->map_size = offset->desc + n * entry;
    ring->map = mmap(NULL, ring->map_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
                     page);
    if (ring->map == MAP_FAILED) {
        ring->map = NULL;
        return false;
    }
    uint8_t *base = ring->map;
    ring->produced = (uint32_t *)(base + offset->producer);
    ring->consumed = (uint32_t *)(base + offset->consumer);
    ring->entries = base + offset->desc;
    ring->mask = n - 1;
    return true;
}

static bool make_rings(struct xdp_tx *tx, void *frames, uint32_t n)
{
    struct xdp_umem_reg area = {
        .addr = (uintptr_t)frames, .len = (uint64_t)n * tx->chunk, .chunk_size = tx->chunk};
    struct xdp_mmap_offsets offsets;
    socklen_t length = sizeof offsets;
    return setsockopt(tx->fd, SOL_XDP, XDP_UMEM_REG, &area, sizeof area) == 0 &&
           set_option(tx->fd, XDP_UMEM_FILL_RING, FILL_ENTRIES) &&
           set_option(tx->fd, XDP_UMEM_COMPLETION_RING, n) &&
           set_option(tx->fd, XDP_TX_RING, n) &&
           getsockopt(tx->fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length) == 0 &&
           length == sizeof offsets &&
           map_ring(&tx->tx, tx->fd, &offsets.tx, n, sizeof(struct xdp_desc), XDP_PGOFF_TX_RING) &&
           map_ring(&tx->done, tx->fd, &offsets.cr, n, sizeof(uint64_t),
                    (off_t)XDP_UMEM_PGOFF_COMPLETION_RING) &&
           map_ring(&tx->fill, tx->fd, &offsets.fr, FILL_ENTRIES, sizeof(uint64_t),
                    (off_t)XDP_UMEM_PGOFF_FILL_RING);
}

struct xdp_tx *xdp_open(unsigned ifindex, int qdisc, void *frames, uint32_t chunk, uint32_t n)
{
    struct xdp_tx *tx = calloc(1, sizeof *tx);
    if (!tx)
        return NULL;
    tx->ifindex = ifindex;
    tx->qdisc = qdisc;
    tx->chunk = chunk;
    tx->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
    tx->taps = taps_open();
    struct sockaddr_xdp address = {
        .sxdp_family = AF_XDP, .sxdp_flags = XDP_COPY, .sxdp_ifindex = ifindex};
    if (tx->fd < 0 || tx->taps < 0 || !make_rings(tx, frames, n) ||
        bind(tx->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        xdp_close(tx);
        return NULL;
    }
    set_option(tx->fd, TX_BUDGET_OPTION, n);
    /* As many bytes as all chunks can be, buffers around them included; refused to the
     * unprivileged, who then have the default, which holds some hundred frames. */
    int room = (int)(n * (chunk + 2048));
    setsockopt(tx->fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    return tx;
}

static void unmap_ring(struct ring *ring)
{
    if (ring->map)
        munmap(ring->map, ring->map_size);
}

void xdp_close(struct xdp_tx *tx)
{
    if (!tx)
        return;
    unmap_ring(&tx->tx);
    unmap_ring(&tx->done);
    unmap_ring(&tx->fill);
    if (tx->fd >= 0)
        close(tx->fd);
    if (tx->taps >= 0)
        close(tx->taps);
    free(tx);
}

void xdp_put(struct xdp_tx *tx, uint32_t chunk, uint32_t len)
{
    struct xdp_desc *desc = (struct xdp_desc *)tx->tx.entries + (tx->put++ & tx->tx.mask);
    *desc = (struct xdp_desc){.addr = (uint64_t)chunk * tx->chunk, .len = len};
}

bool xdp_in_line(const struct xdp_tx *tx) { return get(tx->tx.consumed) != tx->put; }

static uint32_t length_of(const struct xdp_tx *tx, uint32_t index)
{
    return ((struct xdp_desc *)tx->tx.entries)[index & tx->tx.mask].len;
}

struct port_count xdp_waiting(const struct xdp_tx *tx)
{
    struct port_count waiting = {0, 0};
    for (uint32_t at = get(tx->tx.consumed); at != tx->put; at++) {
        waiting.packets++;
        waiting.bytes += length_of(tx, at);
    }
    return waiting;
}

void xdp_kick(struct xdp_tx *tx, struct port_count *lost)
{
    set(tx->tx.produced, tx->put);
    for (unsigned calls = 0; xdp_in_line(tx) && calls < KICKS_MAX; calls++) {
        uint32_t before = get(tx->tx.consumed);
        if (sendto(tx->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0)
            continue;
        if (errno == EBUSY) { /* the last frame taken was dropped: nobody at the other end */
            lost->packets++;
            lost->bytes += length_of(tx, get(tx->tx.consumed) - 1);
        } else if (get(tx->tx.consumed) == before) {
            break; /* the interface is down, or its reader holds on to what it got */
        }
    }
}

uint32_t xdp_reap(struct xdp_tx *tx, uint32_t *chunks, uint32_t room)
{
    uint32_t at = *tx->done.consumed, n = get(tx->done.produced) - at;
    n = n < room ? n : room;
    for (uint32_t i = 0; i < n; i++)
        chunks[i] = (uint32_t)(((uint64_t *)tx->done.entries)[at++ & tx->done.mask] / tx->chunk);
    set(tx->done.consumed, at);
    return n;
}

/* Whom this path would bypass */

struct asked {
    unsigned ifindex;
    ino_t ours;
    bool has_captures;
};

static void see(void *context, unsigned protocol, unsigned ifindex, ino_t inode)
{
    struct asked *asked = context;
    bool is_here = ifindex == 0 || ifindex == asked->ifindex;
    asked->has_captures |= protocol == ETH_P_ALL && is_here && inode != asked->ours;
}

static bool has_captures(const struct xdp_tx *tx, ino_t inode)
{
    struct asked asked = {tx->ifindex, inode, false};
    return !taps_each(tx->taps, see, &asked) || asked.has_captures;
}

bool xdp_is_unwatched(const struct xdp_tx *tx, uint64_t inode)
{
    return !has_captures(tx, inode) && !qdisc_ask(tx->qdisc, tx->ifindex).is_there;
}
