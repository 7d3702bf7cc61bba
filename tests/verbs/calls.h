/* What programs of these tests do with libibverbs alike. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "verbs_calls.h"

enum {
    ALL_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                 IBV_ACCESS_REMOTE_ATOMIC,
};

static inline void need(bool fine, const char *what)
{
    if (!fine) {
        perror(what);
        exit(2);
    }
}

/* Of the only device. */
static inline struct ibv_context *open_device(void)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_context *context = ibv_open_device(devices[0]);
    ibv_free_device_list(devices);
    need(context, "open_device");
    return context;
}

/* Which GID of a device is of IPv4: the kernel's have one of IPv6 before it. */
static inline int gid_index(struct ibv_context *context)
{
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    union ibv_gid gid;
    int index = 0;
    for (; !ibv_query_gid(context, 1, index, &gid); index++)
        if (!memcmp(gid.raw, mapped, sizeof mapped))
            return index;
    need(false, "no GID is of IPv4");
    return index;
}
