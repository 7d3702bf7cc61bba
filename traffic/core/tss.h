/* UET's transport security sublayer (TSS): what is between UDP and packet delivery is the header of a
 * secure domain, and all behind it is encrypted and authenticated (AES-GCM, 256 bits).
 *
 *   | Ethernet | IP | UDP | type (5) SP (1) 0 (1) AN (1), SDI (24) | SSI (32), if SP | TSC (64) | PDS .. | ICV |
 *                \________________________ authenticated ________________________________/\_ encrypted _/
 *
 * A domain (SDI) has two keys, which AN tells apart: while one is in use the next is handed out. Each
 * source has a key of its own, derived of the domain's by a KDF (SP 800-108, counter mode, CMAC), so
 * that no two count with the same one; TSC counts its packets, and never says the same again under
 * a key. Authenticated is, from IP's addresses on, what no switch changes: ECN, DSCP, hop limits and
 * lengths of IP come before.
 *
 * A source is told by its IP address, or, where it has several (SSI), by its first, IPv6's folded. The
 * ICV stands in the place of the CRC.
 *
 * What a switch has cut has no ICV any more. It is decrypted without being authenticated, and does
 * nothing but have its packet sent again.
 *
 * Frames without a payload (EP_PAYLOAD_NONE) have the same header and length, and nothing is encrypted:
 * of these all is checked but the ICV. Not done here: epochs but the first, keys that follow from the
 * TSC, the modes direct and client-server.
 */
#pragma once

#include "units.h"
#include "wire.h"

struct ep;
struct qp;
struct uet_packet;

enum {
    TSS_TYPE = 1, /* where PDS has its own */
    TSS_HEADER = 12,
    TSS_SSI = 4,
    TSS_ICV = 16,
    TSS_KEY = 32,
    TSS_SDI_MAX = 0xFFFFFF,
    TSS_WINDOW = 1 << 14, /* so far behind the newest of a source a packet may come */
};

struct tss;

/* NULL, or why nothing can be encrypted here. */
const char *tss_problem(void);

/* For frames with a payload, or without; with so many peers at most. NULL: memory is short. */
struct tss *tss_new(const struct ep *ep, uint32_t peers);
void tss_free(struct tss *tss);

/* Bytes that frames have more, CRC aside; and those of them that stand before PDS. */
uint32_t tss_header_bytes(bool has_ssi);

/* A domain's key for an AN; of one that is not known yet, the first. What is wrong, or NULL: what is in
 * use is not replaced. */
const char *tss_set_key(struct ep *ep, uint32_t sdi, unsigned an, const uint8_t key[TSS_KEY]);
/* Send by this key from now on, with a count that begins anew. */
const char *tss_use_key(struct ep *ep, uint32_t sdi, unsigned an);

/* Let a queue pair be of a domain, and its peer be a source of it. What is wrong, or NULL. */
const char *tss_join(struct ep *ep, struct qp *qp, uint32_t sdi, const uint8_t *headers);

/* Begin what stands behind UDP; returns what is behind the header. And, once all lengths are there,
 * encrypt what begins at `pds`; the ICV goes behind. */
uint8_t *tss_begin(struct ep *ep, const struct qp *qp, uint8_t *at);
void tss_seal(struct ep *ep, uint8_t *pds, uint8_t *end);

/* Open a packet, of which `pds` is behind the header: afterwards it is plain there. The counter of
 * what is wrong with it, or NULL. */
uint64_t *tss_open(struct ep *ep, const uint8_t *ip, struct uet_packet *packet);

/* Whether who sent it is a queue pair's peer, in its domain. */
bool tss_is_from_peer(const struct ep *ep, const struct qp *qp, const struct uet_packet *packet);
