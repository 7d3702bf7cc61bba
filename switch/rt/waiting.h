/* Packets that wait in long queues, and shortly: of a program's headers and variables, kilobytes, only
 * what egress may look at, and of the frame what no header covers. */
#pragma once

#include "prog.h"

/* The same packet, packed; or itself, if that is not worth it. */
struct pkt *pkt_pack(struct pkt_pool *pool, const struct sw_program *program, struct pkt *p);

/* And back. NULL, and nothing changed, when memory is out. */
struct pkt *pkt_unpack(struct pkt_pool *pool, const struct sw_program *program, struct pkt *packed);
