/* The packet pool's slow path. */
#include "pkt.h"

#include <stdlib.h>

void pkt_pool_init(struct pkt_pool *pool) { memset(pool, 0, sizeof *pool); }

void pkt_pool_free(struct pkt_pool *pool)
{
    for (unsigned class = 0; class < PKT_CLASSES; class++) {
        while (pool->free[class]) {
            struct pkt *p = pool->free[class];
            pool->free[class] = p->next;
            free(p);
        }
    }
}

struct pkt *pkt_refill(struct pkt_pool *pool, unsigned class)
{
    (void)pool;
    return aligned_alloc(64, (size_t)1024 << class);
}
