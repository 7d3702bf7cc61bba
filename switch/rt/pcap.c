#include "pcap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PCAP_MAGIC_NS 0xa1b23c4du
#define PCAP_ETHERNET 1u
#define PCAP_SNAP 65535u
#define NS_IN_S 1000000000u

struct pcap {
    FILE *file;
    bool is_live;
};

static bool put(struct pcap *pcap, const void *bytes, size_t len)
{
    return fwrite(bytes, 1, len, pcap->file) == len;
}

static bool settle(struct pcap *pcap) { return !pcap->is_live || fflush(pcap->file) == 0; }

struct pcap *pcap_open(const char *path, bool is_live)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return descriptor < 0 ? NULL : pcap_on(descriptor, is_live);
}

struct pcap *pcap_on(int descriptor, bool is_live)
{
    struct pcap *pcap = malloc(sizeof *pcap);
    FILE *file = pcap ? fdopen(descriptor, "wb") : NULL;
    if (!file) {
        close(descriptor);
        free(pcap);
        return NULL;
    }
    *pcap = (struct pcap){file, is_live};
    uint32_t head[6] = {PCAP_MAGIC_NS, 2 | 4 << 16, 0, 0, PCAP_SNAP, PCAP_ETHERNET};
    if (!put(pcap, head, sizeof head) || !settle(pcap)) {
        pcap_close(pcap);
        return NULL;
    }
    return pcap;
}

bool pcap_write(struct pcap *pcap, const void *frame, uint32_t stored, uint32_t wire, ns_t when)
{
    uint32_t head[4] = {(uint32_t)(when / NS_IN_S), (uint32_t)(when % NS_IN_S), stored, wire};
    return put(pcap, head, sizeof head) && put(pcap, frame, stored) && settle(pcap);
}

void pcap_close(struct pcap *pcap)
{
    if (!pcap)
        return;
    fclose(pcap->file);
    free(pcap);
}
