/* Capture files: the classic format with nanosecond times. The one place that writes them. */
#pragma once

#include "base.h"

struct pcap;

/* A live capture is read while it grows: each frame is there once it is written. */
struct pcap *pcap_open(const char *path, bool is_live); /* NULL: errno tells */
struct pcap *pcap_on(int descriptor, bool is_live);     /* the same; closes it in the end */

/* Of a frame only the beginning may be there; `wire` is how long it was. False: errno tells. */
bool pcap_write(struct pcap *pcap, const void *frame, uint32_t stored, uint32_t wire, ns_t when);
void pcap_close(struct pcap *pcap); /* NULL is fine */
