/* A quicker way out of an interface: AF_XDP, transmit only.
 *
 * Sending is what a software switch spends its time on: through a veth it costs the kernel about
 * three times what a packet costs us. An AF_XDP socket in copy mode takes a batch of frames from
 * shared memory in one call and skips the queueing layer, which saves a third of that. It needs
 * no BPF program, for nothing is received through it: receiving that way was measured too, and is
 * no faster on a veth than an AF_PACKET ring, which leaves the interface as it is.
 *
 * What is skipped may matter to somebody. A queueing discipline (Mininet's link shaping) would
 * not be obeyed, and whoever captures on the interface would not see the frames. So this path is
 * taken only while an interface has neither: xdp_is_unwatched.
 *
 *   frames  one area of equal chunks, the caller's; a chunk is the caller's or the kernel's
 *   tx      chunks to send, in order          (we produce, the kernel consumes)
 *   done    chunks sent, free again           (the kernel produces, we consume)
 */
#pragma once

#include "sw.h"

struct xdp_tx;

/* A socket that sends chunks of `frames` through an interface of the calling thread's network
 * namespace. `qdisc` asks for the interface's queueing disciplines and stays the caller's; `chunk` is
 * 2048 or 4096, `n` a power of two, `frames` page-aligned. NULL where the kernel does not offer it;
 * the caller then sends in another way. */
struct xdp_tx *xdp_open(unsigned ifindex, int qdisc, void *frames, uint32_t chunk, uint32_t n);
void xdp_close(struct xdp_tx *tx); /* afterwards the frames are all the caller's */

/* Append a chunk's first `len` bytes to the batch. There is room for all chunks at once. */
void xdp_put(struct xdp_tx *tx, uint32_t chunk, uint32_t len);
/* Hand the batch to the kernel; frames that it refused are added to `lost`. What it could not take
 * yet stays in line, and goes with the next call. */
void xdp_kick(struct xdp_tx *tx, struct port_count *lost);
bool xdp_in_line(const struct xdp_tx *tx);
struct port_count xdp_waiting(const struct xdp_tx *tx); /* in line */
/* Chunks that are free again, at most `room`; returns how many. */
uint32_t xdp_reap(struct xdp_tx *tx, uint32_t *chunks, uint32_t room);

/* Whether the interface has no queueing discipline and nobody but the socket of `inode` captures
 * on it. Asks the kernel: tens of microseconds. */
bool xdp_is_unwatched(const struct xdp_tx *tx, uint64_t inode);
