// Timers: what a switch does when a time has come, with no packet to do it on.
//
// A cell of `timers` is a deadline, 0 none. When it has come the switch clears it and makes a packet
// of its own, which begins with the cell's number (`timer_t`) and is told from all others by its
// instance type, which no port can forge. Two timers for every queue:
//
//     TIMER_RENEW(queue)    an ingress queue's pause is to be sent again
//     TIMER_WATCH(queue)    the watchdog is to look at an egress queue
//
// And one that is no cell, which the switch rings by itself (traffic_manager.h):
//
//     TIMER_ASK(queue)      an egress queue has waited for credits for long (credit.p4)
//
// The last cell is the earliest of all deadlines, or earlier: SET_TIMER keeps it so.
//
// Stops:  ringing is the switch's doing (switch/rt/timer.c). BMv2 cannot; there the packets that go
//         round while a queue is paused look at the clock instead (parking.p4).

#ifndef TIMERS_P4
#define TIMERS_P4

#include "types.p4"
#include "sizes.p4"

const bit<32> PACKET_TIMER = 7;         // instance type

#define TIMER_RENEW(queue) (queue)
#define TIMER_WATCH(queue) ((queue) + QUEUES)
#define TIMER_EARLIEST     (2 * QUEUES)
#define TIMER_ASK(queue)   ((queue) + 2 * QUEUES + 1)

@timer
register<tick_t>(2 * QUEUES + 1) timers;

// In an action; to be used once in it.
#define SET_TIMER(cell, deadline)                                                       \
    tick_t earliest;                                                                    \
    timers.read(earliest, TIMER_EARLIEST);                                              \
    timers.write(TIMER_EARLIEST,                                                        \
                 (deadline) != 0 && (earliest == 0 || (deadline) < earliest) ? (deadline) \
                                                                             : earliest); \
    timers.write(cell, deadline);

#endif
