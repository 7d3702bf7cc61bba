/* Ports on Linux interfaces: AF_PACKET, frames received through a ring shared with the kernel.
 *
 * Received frames are read where the kernel put them. It takes the VLAN tag out and may leave a
 * TCP or UDP checksum to hardware that is not there; both are mended here, so that the program
 * sees what would be on a wire. Frames sent are gathered and handed over in one call per burst.
 */
#ifndef SW_PACKET_H
#define SW_PACKET_H

#include "sw.h"

struct packet_port;

/* Open an interface, in another network namespace if `netns` is a path like /proc/PID/ns/net; or
 * take over `fd`, an AF_PACKET socket bound to its interface. NULL with errno and *what set. */
struct packet_port *packet_open(const char *interface, const char *netns, int fd,
                                const char **what);
int packet_fd(const struct packet_port *port); /* readable when frames wait */
bool packet_attach(struct sw *sw, uint32_t number, struct packet_port *port);

/* Receive up to `most` frames; returns how many there were. */
unsigned packet_receive(struct packet_port *port, struct sw *sw, uint32_t number, unsigned most,
                        ns_t now);
/* Whether the interface is up and has a carrier. */
bool packet_is_up(const struct packet_port *port);

#endif
