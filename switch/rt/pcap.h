/* Capture files: the classic format with nanosecond times. */
#ifndef SW_PCAP_H
#define SW_PCAP_H

#include "base.h"

struct pcap;

struct pcap *pcap_open(const char *path); /* NULL: errno tells */
void pcap_write(struct pcap *pcap, const void *frame, uint32_t len, ns_t when);
void pcap_close(struct pcap *pcap); /* NULL is fine */

#endif
