/* The real-time worker: one thread that hosts any number of switches on real interfaces.
 *
 * It receives in bursts, services the switches that want it, and sleeps in epoll when there is
 * nothing to do, until a frame arrives, a queue's time has come, or somebody knocks. Its clock
 * starts at zero and may run slower than the wall's.
 *
 * Other threads get at a switch by loop_enter, which waits for the end of the burst; until
 * loop_leave the switch is theirs alone. Held for a moment only, this costs packets no more than
 * the work itself. Long work is cut in slices by whoever brings it.
 */
#pragma once

#include "port_socket.h"

struct loop;

struct loop *loop_new(double dilation); /* NULL with errno */
void loop_free(struct loop *loop);      /* stopped, and without switches */
bool loop_start(struct loop *loop);
void loop_stop(struct loop *loop);
ns_t loop_now(const struct loop *loop);
struct pkt_pool *loop_pool(struct loop *loop);

void loop_enter(struct loop *loop);
/* `wake`: something may be due, look at every switch. */
void loop_leave(struct loop *loop, bool wake);

/* Between enter and leave: */
bool loop_add(struct loop *loop, struct sw *sw);
void loop_remove(struct loop *loop, struct sw *sw); /* its ports too */
/* Takes the port over, and closes it on failure: errno is EBUSY if the number is in use. */
bool loop_add_port(struct loop *loop, struct sw *sw, uint32_t number, struct socket_port *port);
void loop_remove_port(struct loop *loop, struct sw *sw, uint32_t number);

/* How late the loop handed over what was on its cables, in its own clock: how often by so much since the last
 * call, in classes an eighth of a power of two wide, of which loop_late_floor is the least. */
#define LOOP_LATE_CLASSES 496
void loop_lateness(struct loop *loop, uint64_t counts[LOOP_LATE_CLASSES]);
ns_t loop_late_floor(uint32_t class);
