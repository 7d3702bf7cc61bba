/* Frames are written through a buffer and flushed one by one: a capture is read while it grows. */
#include "pcap.h"

#include <stdio.h>
#include <stdlib.h>

#define PCAP_MAGIC_NS 0xa1b23c4du
#define PCAP_ETHERNET 1u
#define PCAP_SNAP 65535u

struct pcap {
    FILE *file;
};

struct pcap *pcap_open(const char *path)
{
    struct pcap *pcap = malloc(sizeof *pcap);
    if (!pcap)
        return NULL;
    pcap->file = fopen(path, "wb");
    if (!pcap->file) {
        free(pcap);
        return NULL;
    }
    uint32_t head[6] = {PCAP_MAGIC_NS, 2 | 4 << 16, 0, 0, PCAP_SNAP, PCAP_ETHERNET};
    fwrite(head, sizeof head, 1, pcap->file);
    fflush(pcap->file);
    return pcap;
}

void pcap_write(struct pcap *pcap, const void *frame, uint32_t len, ns_t when)
{
    uint32_t head[4] = {(uint32_t)(when / 1000000000), (uint32_t)(when % 1000000000), len, len};
    fwrite(head, sizeof head, 1, pcap->file);
    fwrite(frame, len, 1, pcap->file);
    fflush(pcap->file);
}

void pcap_close(struct pcap *pcap)
{
    if (!pcap)
        return;
    fclose(pcap->file);
    free(pcap);
}
