/* The queueing disciplines of an interface (tc), as far as a sender must know of them.
 *
 * A discipline shapes, and queues what it holds back; whoever bypasses it bypasses the shape. One
 * whose own queue is full drops the frame it is handed and says ENOBUFS, which is also what is said
 * of a frame that a filter dropped, or that nobody at a veth's other end would take. What tells
 * them apart is whether anything waits in the discipline.
 */
#pragma once

#include "base.h"

struct qdisc {
    bool is_there;    /* any but noqueue; also where the kernel would not answer */
    uint32_t waiting; /* packets queued in it */
};

/* A socket to ask through, in the calling thread's network namespace; -1 with errno. */
int qdisc_open(void);
/* Costs a system call or two: tens of microseconds. */
struct qdisc qdisc_ask(int fd, unsigned ifindex);
/* Tell of every interface that has any; false where the kernel would not answer. */
bool qdisc_each(int fd, void (*tell)(void *context, unsigned ifindex), void *context);
