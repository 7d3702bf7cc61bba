/* The quickest way out of an interface for many frames at a time: by a program in the kernel.
 *
 * What sends a frame by any socket enters the kernel's softirq for it, and gives it memory that is
 * accounted for. Here one call runs a program, in BPF, over frames in memory shared with it; it hands
 * each to the interface, and only when it is through does the receiving begin, for all of them. Through a
 * veth that takes three quarters of what AF_XDP takes. BPF_PROG_TEST_RUN was made for tests, but
 * what the program hands over leaves as anything else does: captures see it, and queueing disciplines
 * would take it. These would drop what they have no room for, where a socket is told to wait; so the
 * caller asks first whether there is one.
 *
 * It needs Linux 5.17 and root's capabilities outside of any user namespace.
 */
#pragma once

#include <sys/uio.h>

#include "sw.h"

struct burst;

#define BURST_MAX 32u /* frames in one: more are no quicker, and the first waits for the last */

/* Sends frames that lie in `n` chunks of `chunk` bytes, page-aligned and mapped, through an interface of
 * the calling thread's network namespace, in which it has to stay. The chunks keep what is in them, and
 * stay the caller's to unmap. NULL where the kernel does not offer it. */
struct burst *burst_open(unsigned ifindex, uint8_t *frames, uint32_t chunk, uint32_t n);
void burst_close(struct burst *burst);

/* Send `n` frames in order, each at the beginning of a chunk; those that nobody took are added to `lost`.
 * false: none was sent, and the kernel will not. */
bool burst_send(struct burst *burst, const struct iovec *frames, uint32_t n,
                struct port_count *lost);
