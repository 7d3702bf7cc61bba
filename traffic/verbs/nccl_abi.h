/* What NCCL expects of a plugin for its network, version 8 of that interface (NCCL 2.20 and later).
 *
 * Names, orders and widths are those of its public headers. Functions return a result; those that
 * cannot go on yet succeed with nothing in their last argument, and are called again.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef enum {
    ncclSuccess = 0,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
} ncclResult_t;

enum { NCCL_LOG_WARN = 2, NCCL_LOG_INFO = 3 };
enum { NCCL_INIT = 1, NCCL_NET = 16 };
typedef void (*ncclDebugLogger_t)(int level, unsigned long flags, const char *file, int line,
                                  const char *format, ...);

enum {
    NCCL_NET_HANDLE_MAXSIZE = 128,
    NCCL_NET_MAX_REQUESTS = 32, /* of a connection, at once */
    NCCL_PTR_HOST = 1,
    NCCL_NET_DEVICE_HOST = 0,
    NCCL_NET_DEVICE_INVALID_VERSION = 0,
};

typedef struct {
    char *name;
    char *pciPath;
    uint64_t guid;
    int ptrSupport;
    int regIsGlobal;
    int speed; /* Mb/s */
    int port;
    float latency; /* us */
    int maxComms;
    int maxRecvs;
    int netDeviceType;
    int netDeviceVersion;
} ncclNetProperties_v8_t;

typedef struct {
    const char *name;
    ncclResult_t (*init)(ncclDebugLogger_t log);
    ncclResult_t (*devices)(int *count);
    ncclResult_t (*getProperties)(int device, ncclNetProperties_v8_t *properties);
    ncclResult_t (*listen)(int device, void *handle, void **listen_comm);
    ncclResult_t (*connect)(int device, void *handle, void **send_comm, void **device_comm);
    ncclResult_t (*accept)(void *listen_comm, void **recv_comm, void **device_comm);
    ncclResult_t (*regMr)(void *comm, void *data, size_t size, int type, void **mr);
    ncclResult_t (*regMrDmaBuf)(void *comm, void *data, size_t size, int type, uint64_t offset,
                                int fd, void **mr);
    ncclResult_t (*deregMr)(void *comm, void *mr);
    ncclResult_t (*isend)(void *send_comm, void *data, int size, int tag, void *mr,
                          void **request);
    ncclResult_t (*irecv)(void *recv_comm, int n, void **data, int *sizes, int *tags, void **mrs,
                          void **request);
    ncclResult_t (*iflush)(void *recv_comm, int n, void **data, int *sizes, void **mrs,
                           void **request);
    ncclResult_t (*test)(void *request, int *done, int *sizes);
    ncclResult_t (*closeSend)(void *send_comm);
    ncclResult_t (*closeRecv)(void *recv_comm);
    ncclResult_t (*closeListen)(void *listen_comm);
    ncclResult_t (*getDeviceMr)(void *comm, void *mr, void **device_mr);
    ncclResult_t (*irecvConsumed)(void *recv_comm, int n, void *request);
} ncclNet_v8_t;
