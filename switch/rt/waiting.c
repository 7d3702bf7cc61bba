/* A packed packet is
 *
 *   struct pkt, up to `frame` | what the program packed | bytes that no header covers
 *
 * Those bytes lie where they lay once it is taken apart again; those before them, which headers took,
 * are lost, as only ingress goes back to them. */
#include "waiting.h"

#define KEPT offsetof(struct pkt, frame)
#define PACKED_MAX 8192u  /* of a program's */
#define PAYLOAD_MAX 512u /* more is not copied twice to save what headers take */

struct pkt *pkt_pack(struct pkt_pool *pool, const struct sw_program *program, struct pkt *p)
{
    _Alignas(16) uint8_t room[PACKED_MAX];
    uint8_t class;
    if (program->packed_most > sizeof room || p->len > PAYLOAD_MAX)
        return p;
    uint32_t bytes = program->pack(p->phv, room);
    uint8_t *packed = blocks_take(&pool->packed, KEPT + bytes + p->len, &class);
    if (!packed)
        return p;
    struct pkt *waits = (struct pkt *)packed;
    memcpy(packed, p, KEPT);
    memcpy(packed + KEPT, room, bytes);
    memcpy(packed + KEPT + bytes, p->data, p->len);
    waits->data = packed + KEPT + bytes;
    waits->class = class;
    waits->is_packed = true;
    blocks_give(&pool->blocks, p, p->class);
    return waits;
}

struct pkt *pkt_unpack(struct pkt_pool *pool, const struct sw_program *program, struct pkt *packed)
{
    struct pkt *p = pkt_alloc(pool, program->phv_size, program->headroom, packed->frame_len);
    if (!p)
        return NULL;
    uint8_t class = p->class;
    memcpy(p, packed, KEPT);
    p->class = class;
    p->is_packed = false;
    p->data = p->frame + packed->frame_len - packed->len;
    program->unpack(p->phv, (const uint8_t *)packed + KEPT);
    memcpy(p->data, packed->data, packed->len);
    pkt_release(pool, packed);
    return p;
}
