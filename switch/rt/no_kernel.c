/* The run-time where there is no Linux: nothing but simulations, whose switches no loop hosts and whose
 * ports are in memory. What makes the others fails; what would be done with them is never called.
 */
#include <errno.h>
#include <stdlib.h>

#include "loop.h"

struct loop *loop_new(double dilation)
{
    (void)dilation;
    errno = ENOSYS;
    return NULL;
}

struct socket_port *socket_open(const char *interface, const char *netns, int fd, const char **what)
{
    (void)interface, (void)netns, (void)fd;
    *what = "a socket of Linux";
    errno = ENOSYS;
    return NULL;
}

#define NEVER_CALLED abort()

ns_t loop_now(const struct loop *loop) { (void)loop, NEVER_CALLED; }
struct pkt_pool *loop_pool(struct loop *loop) { (void)loop, NEVER_CALLED; }
void loop_enter(struct loop *loop) { (void)loop, NEVER_CALLED; }
void loop_leave(struct loop *loop, bool wake) { (void)loop, (void)wake, NEVER_CALLED; }
bool loop_add(struct loop *loop, struct sw *sw) { (void)loop, (void)sw, NEVER_CALLED; }
void loop_remove(struct loop *loop, struct sw *sw) { (void)loop, (void)sw, NEVER_CALLED; }

bool loop_add_port(struct loop *loop, struct sw *sw, uint32_t number, struct socket_port *port)
{
    (void)loop, (void)sw, (void)number, (void)port, NEVER_CALLED;
}

void loop_remove_port(struct loop *loop, struct sw *sw, uint32_t number)
{
    (void)loop, (void)sw, (void)number, NEVER_CALLED;
}

bool socket_start(struct socket_port *port, bytes_t ring_bytes)
{
    (void)port, (void)ring_bytes, NEVER_CALLED;
}

void socket_close(void *port) { (void)port, NEVER_CALLED; }
