/* A plugin of NCCL's network that turns a bit of what the true one (NCCL_NET_TRUE) receives. */
#include <dlfcn.h>
#include <stdlib.h>

#include "nccl_abi.h"

enum { MIN = 64, AT = 37 };

ncclNet_v8_t ncclNetPlugin_v8;
static const ncclNet_v8_t *true_net;
static void *received_by;
static unsigned char *received;

static ncclResult_t irecv(void *comm, int n, void **data, int *sizes, int *tags, void **mrs,
                          void **request)
{
    ncclResult_t result = true_net->irecv(comm, n, data, sizes, tags, mrs, request);
    if (*request && sizes[0] >= MIN) {
        received_by = *request;
        received = data[0];
    }
    return result;
}

static ncclResult_t test(void *request, int *done, int *sizes)
{
    ncclResult_t result = true_net->test(request, done, sizes);
    if (*done && request == received_by)
        received[AT] ^= 1;
    return result;
}

__attribute__((constructor)) static void begin(void)
{
    true_net = dlsym(dlopen(getenv("NCCL_NET_TRUE"), RTLD_NOW), "ncclNetPlugin_v8");
    ncclNetPlugin_v8 = *true_net;
    ncclNetPlugin_v8.name = "liar";
    ncclNetPlugin_v8.irecv = irecv;
    ncclNetPlugin_v8.test = test;
}
