/* Ports on Linux interfaces: AF_PACKET, frames received through a ring shared with the kernel.
 *
 * Received frames are read where the kernel put them. It takes the VLAN tag out and may leave a
 * TCP or UDP checksum to hardware that is not there; both are mended here, so that the program
 * sees what would be on a wire. Frames sent are gathered and handed over in one call per burst:
 * sendmmsg, or a quick way while a port is busy and its interface has no queueing discipline. That
 * is a program in the kernel (burst_send.h), or where we may load none AF_XDP (xdp_send.h) while nobody
 * captures.
 *
 * What the kernel has no room for stays, in order, and the port is full until it has: so the queue
 * before a slow interface stands in the switch, where the program sees it. How much is left to the
 * kernel then follows how fast it gets rid of it.
 *
 * Other ways were measured on veths and left out. A TPACKET_V3 ring receives no faster and tells
 * of a frame a millisecond late; AF_XDP receives no faster. A transmit ring copies nothing, but
 * may hand a frame's memory back while a capture at the other end still reads it.
 */
#pragma once

#include <sys/types.h>

#include "arrival_times.h"
#include "short_cable.h"
#include "sw.h"

struct socket_port;

enum socket_wait { /* for the kernel to take what it had no room for */
    SOCKET_GOES,  /* it took all */
    SOCKET_POLL,  /* epoll says when it has room */
    SOCKET_RETRY, /* nobody says: its own queue was full */
};

/* Open an interface, in another network namespace if `netns` is a path like /proc/PID/ns/net; or
 * take over `fd`, an AF_PACKET socket bound to its interface. NULL with errno and *what set. */
struct socket_port *socket_open(const char *interface, const char *netns, int fd,
                                const char **what);
/* Begin to receive, into a ring of about so many bytes, or of less if memory is short; false with
 * errno if not even that can be had. An MTU raised later lets no larger frames in. */
bool socket_start(struct socket_port *port, bytes_t ring_bytes);
int socket_fd(const struct socket_port *port); /* readable when frames wait */
bool socket_attach(struct sw *sw, uint32_t number, struct socket_port *port); /* sw closes it */
void socket_close(void *port);

/* Both ends of its cable tell each other when frames are due; either may be NULL. What is due at a time
 * of the switch's is so at `origin` and `dilation` times as long after, by CLOCK_MONOTONIC. */
void socket_tell_arrival_times(struct socket_port *port, struct arrival_times *in, struct arrival_times *out);
bool socket_is_waited_for(const struct socket_port *port); /* what it sends, until it is due */
void socket_set_clock(struct socket_port *port, ns_t origin, double dilation);
/* Two ports that tell each other when frames are due are joined by a cable in memory as well, which
 * frames go by while nobody sees either interface. False if they are not the ends of one cable. */
bool socket_join(struct socket_port *port, struct socket_port *other);
unsigned socket_interface(const struct socket_port *port, ino_t *inode); /* and its socket */
void socket_see(struct socket_port *port, bool is_seen); /* or shaped; until told, it is */
const struct short_cable *socket_short_cable(const struct socket_port *port); /* that frames come by */
/* When the next frame is due, or when the kernel had it if nobody told, by CLOCK_MONOTONIC, which is so much
 * `behind` CLOCK_REALTIME and shows `real`; 0 if none waits. */
ns_t socket_came(struct socket_port *port, ns_t real, ns_t behind);
/* Receive up to `most` frames; returns how many there were. */
unsigned socket_receive(struct socket_port *port, struct sw *sw, uint32_t number, unsigned most,
                        ns_t now);
enum socket_wait socket_waits(const struct socket_port *port);
/* Try again; as socket_waits. What did not leave is told to the switch by the next flush. */
enum socket_wait socket_resume(struct socket_port *port);
/* To be called now and then, and when epoll reports an error: finds an interface again that was
 * made anew under its name, and says whether it is up and has a carrier. */
bool socket_check(struct socket_port *port);
