/* Protection domains and registered memory: who may touch what by which key.
 *
 * A key is a place in the table and, in its low byte, a tag that is another each time the place is
 * used: a key of memory that is registered no more is refused, and does not lead to other memory.
 */
#include <errno.h>
#include <stdlib.h>

#include "rc.h"

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd = calloc(1, sizeof *pd);
    if (pd)
        pd->context = context;
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    struct ctx *ctx = ctx_of(pd->context);
    int code = 0;
    pthread_mutex_lock(&ctx->lock);
    for (uint32_t i = 0; i < ctx->keys_count && !code; i++)
        code = ctx->keys[i].mr && ctx->keys[i].mr->pd == pd ? EBUSY : 0;
    for (uint32_t i = 0; i < ctx->qps_next && !code; i++)
        code = ctx->qps[i] && ctx->qps[i]->ex.qp_base.pd == pd ? EBUSY : 0;
    pthread_mutex_unlock(&ctx->lock);
    if (!code)
        free(pd);
    return code;
}

/* A free place in the table of keys; NULL: there is none. */
static struct key *free_key(struct ctx *ctx)
{
    for (; ctx->keys_free < ctx->keys_count; ctx->keys_free++)
        if (!ctx->keys[ctx->keys_free].mr)
            return &ctx->keys[ctx->keys_free];
    if (ctx->keys_count == ctx->keys_room) {
        uint32_t room = ctx->keys_room ? 2 * ctx->keys_room : 64;
        struct key *grown = room <= KEYS_MAX ? realloc(ctx->keys, room * sizeof *grown) : NULL;
        if (!grown)
            return NULL;
        memset(grown + ctx->keys_room, 0, (room - ctx->keys_room) * sizeof *grown);
        ctx->keys = grown;
        ctx->keys_room = room;
        ctx->keys_count += !ctx->keys_count; /* the first is nobody's */
    }
    return &ctx->keys[ctx->keys_count++];
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned access)
{
    const unsigned changes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    struct ctx *ctx = ctx_of(pd->context);
    if ((access & changes && !(access & IBV_ACCESS_LOCAL_WRITE)) ||
        (uintptr_t)addr + length < (uintptr_t)addr) {
        errno = EINVAL;
        return NULL;
    }
    if (access & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_MW_BIND)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    struct ibv_mr *mr = calloc(1, sizeof *mr);
    pthread_mutex_lock(&ctx->lock);
    struct key *key = mr ? free_key(ctx) : NULL;
    if (key) {
        key->tag++;
        key->mr = mr;
        key->access = (int)access;
        key->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
        uint32_t number = (uint32_t)(key - ctx->keys) << 8 | key->tag;
        *mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length,
                              .handle = number, .lkey = number, .rkey = number};
    }
    pthread_mutex_unlock(&ctx->lock);
    if (key)
        return mr;
    free(mr);
    errno = ENOMEM;
    return NULL;
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                               int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    struct ctx *ctx = ctx_of(mr->context);
    pthread_mutex_lock(&ctx->lock);
    uint32_t place = mr->lkey >> 8;
    ctx->keys[place].mr = NULL;
    if (place < ctx->keys_free)
        ctx->keys_free = place;
    pthread_mutex_unlock(&ctx->lock);
    free(mr);
    return 0;
}

struct key *key_find(struct ctx *ctx, const struct ibv_pd *pd, uint32_t number)
{
    struct key *key = number >> 8 < ctx->keys_count ? &ctx->keys[number >> 8] : NULL;
    return key && key->mr && key->tag == (number & 0xFF) && key->mr->pd == pd ? key : NULL;
}

uint8_t *memory_at(struct ctx *ctx, const struct ibv_pd *pd, uint32_t number, uint64_t address,
                   uint64_t length, int access)
{
    const struct key *key = key_find(ctx, pd, number);
    if (!key || (key->access & access) != access || address < key->iova ||
        length > key->mr->length || address - key->iova > key->mr->length - length)
        return NULL;
    return (uint8_t *)key->mr->addr + (address - key->iova);
}

/* The part of a list that begins at an offset, piece by piece; false: a piece is not allowed, or
 * the list ends before. */
static bool pieces(struct ctx *ctx, const struct ibv_pd *pd, const struct ibv_sge *sge,
                   unsigned sges, uint64_t offset, uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    for (unsigned i = 0; i < sges && bytes; i++) {
        if (offset >= sge[i].length) {
            offset -= sge[i].length;
            continue;
        }
        uint64_t here = sge[i].length - offset;
        uint32_t part = here < bytes ? (uint32_t)here : bytes;
        uint8_t *at = memory_at(ctx, pd, sge[i].lkey, sge[i].addr + offset, part,
                                from ? IBV_ACCESS_LOCAL_WRITE : 0);
        if (!at)
            return false;
        if (from) {
            memcpy(at, from, part);
            from += part;
        } else {
            memcpy(to, at, part);
            to += part;
        }
        bytes -= part;
        offset = 0;
    }
    return !bytes;
}

bool scatter(struct ctx *ctx, const struct ibv_pd *pd, const struct ibv_sge *sge, unsigned sges,
             uint64_t offset, const uint8_t *from, uint32_t bytes)
{
    return pieces(ctx, pd, sge, sges, offset, NULL, from, bytes);
}

bool gather(struct ctx *ctx, const struct ibv_pd *pd, const struct ibv_sge *sge, unsigned sges,
            uint64_t offset, uint8_t *to, uint32_t bytes)
{
    return pieces(ctx, pd, sge, sges, offset, to, NULL, bytes);
}
