/* Domains, their sources, and who counts what. */
#include "tss.h"

#include <stdlib.h>

#include "aead.h"
#include "uet.h"

_Static_assert((int)TSS_KEY == AEAD_KEY && (int)TSS_ICV == AEAD_TAG, "AES-GCM with 256 bits");

enum {
    HAS_SSI = 4, /* of the first byte, which begins with the type */
    COUNTER_BITS = 48,
    MAX_DOMAINS = 4096,
    DERIVED = TSS_KEY + AEAD_IV, /* a key, and what IVs are masked with */
};

/* What goes by a source's own key; made when it is first needed, or the domain's key is another. */
struct derived {
    struct aead *aead;
    uint8_t mask[AEAD_IV];
    uint32_t turn; /* the how manieth key of its slot that was */
};

struct slot {
    uint8_t key[TSS_KEY];
    uint32_t turn; /* 0: there is none */
    struct derived own;
};

struct domain {
    uint32_t sdi;
    unsigned an; /* by which we send */
    bool is_used;
    uint64_t count;
    struct slot slots[2];
};

/* A peer in a domain, or what came of it by a key. */
struct source {
    uint32_t id, domain, next; /* next: of the same id, in another domain */
    uint8_t address[WIRE_IPV6_ADDRESS];
    struct heard {
        struct derived derived;
        uint64_t high; /* one more than the newest count */
        uint64_t *seen;
    } heard[2];
};

struct tss {
    struct aead_library *library; /* NULL: nothing is encrypted */
    bool has_ssi, is_v6;
    uint32_t n_domains, n_sources;
    struct domain *domains;
    struct source *sources;
    struct idmap by_id;
    struct domain *sending; /* whose frame is being built */
    bool has_own;
    uint32_t own_id;
    uint8_t own_address[WIRE_IPV6_ADDRESS];
    uint32_t room;
    uint8_t plain[];
};

const char *tss_problem(void)
{
    struct aead_library *library = aead_load();
    aead_unload(library);
    return library ? NULL : AEAD_CURE;
}

uint32_t tss_header_bytes(bool has_ssi) { return TSS_HEADER + (has_ssi ? TSS_SSI : 0); }

struct tss *tss_new(const struct ep *ep, uint32_t peers)
{
    enum { HEADERS = 256 };
    bool seals = ep->config.payload == EP_PAYLOAD_PATTERN;
    uint32_t room = seals ? ep->config.mtu + HEADERS : 0;
    struct tss *tss = calloc(1, sizeof *tss + room);
    if (!tss)
        return NULL;
    tss->room = room;
    tss->has_ssi = ep->config.ports > 1;
    tss->is_v6 = ep->config.ip == 6;
    tss->sources = calloc(peers + 1, sizeof *tss->sources);
    bool has_map = idmap_init(&tss->by_id, peers + 1);
    if (seals)
        tss->library = aead_load();
    if (!has_map || !tss->sources || (seals && !tss->library)) {
        tss_free(tss);
        return NULL;
    }
    return tss;
}

static void forget(const struct tss *tss, struct derived *derived)
{
    if (tss->library)
        aead_free(tss->library, derived->aead);
    *derived = (struct derived){0};
}

void tss_free(struct tss *tss)
{
    if (!tss)
        return;
    for (uint32_t i = 0; i < 2 * tss->n_domains; i++)
        forget(tss, &tss->domains[i / 2].slots[i % 2].own);
    for (uint32_t i = 0; i < 2 * tss->n_sources; i++) {
        struct heard *heard = &tss->sources[i / 2].heard[i % 2];
        forget(tss, &heard->derived);
        free(heard->seen);
    }
    free(tss->domains);
    free(tss->sources);
    idmap_free(&tss->by_id);
    aead_unload(tss->library);
    free(tss);
}

/* --- keys -------------------------------------------------------------------------------------- */

/* A source's key: what identifies it is its SSI or IPv4 address, or its IPv6 address. The epoch and what
 * would follow from the count are 0. */
static bool derive(const struct tss *tss, const struct slot *slot, uint32_t id, const uint8_t *address,
                   bool seals, struct derived *derived)
{
    enum { CONTEXT = 4, SMALL = 10, LARGE = 26, COUNTED = 4 };
    uint8_t text[CONTEXT + LARGE + COUNTED] = {0, 'U', '1'}, out[3 * CMAC_BYTES];
    uint32_t context = tss->is_v6 && !tss->has_ssi ? LARGE : SMALL, bytes = CONTEXT + context + COUNTED;
    if (context == LARGE)
        memcpy(text + CONTEXT + LARGE - WIRE_IPV6_ADDRESS, address, WIRE_IPV6_ADDRESS);
    else
        be32_store(text + CONTEXT + SMALL - 4, id);
    be32_store(text + CONTEXT + context, 8 * DERIVED);
    for (uint8_t i = 0; i < sizeof out / CMAC_BYTES; i++) {
        text[0] = i + 1;
        if (!aead_cmac(tss->library, slot->key, text, bytes, out + CMAC_BYTES * i))
            return false;
    }
    forget(tss, derived);
    derived->aead = aead_new(tss->library, out, seals);
    memcpy(derived->mask, out + TSS_KEY, AEAD_IV);
    derived->turn = slot->turn;
    return derived->aead;
}

static struct domain *find_domain(const struct tss *tss, uint32_t sdi)
{
    for (uint32_t i = 0; i < tss->n_domains; i++)
        if (tss->domains[i].sdi == sdi)
            return &tss->domains[i];
    return NULL;
}

static struct domain *add_domain(struct tss *tss, uint32_t sdi)
{
    size_t bytes = (tss->n_domains + 1) * sizeof *tss->domains;
    struct domain *domains = tss->n_domains < MAX_DOMAINS ? realloc(tss->domains, bytes) : NULL;
    if (!domains)
        return NULL;
    tss->domains = domains;
    domains[tss->n_domains] = (struct domain){.sdi = sdi};
    return &domains[tss->n_domains++];
}

const char *tss_set_key(struct ep *ep, uint32_t sdi, unsigned an, const uint8_t key[TSS_KEY])
{
    struct tss *tss = ep->tss;
    if (!tss || sdi > TSS_SDI_MAX || an > 1)
        return "keys are of adapters with security=1, of domains of 24 bits, and have number 0 or 1";
    struct domain *domain = find_domain(tss, sdi);
    if (!domain && !(domain = add_domain(tss, sdi)))
        return "there are too many domains, or memory is short";
    if (domain->is_used && domain->an == an)
        return "the key is in use: give the other, and use it";
    memcpy(domain->slots[an].key, key, TSS_KEY);
    domain->slots[an].turn++;
    return NULL;
}

const char *tss_use_key(struct ep *ep, uint32_t sdi, unsigned an)
{
    struct domain *domain = ep->tss && an <= 1 ? find_domain(ep->tss, sdi) : NULL;
    if (!domain || !domain->slots[an].turn)
        return "there is no such key";
    if (domain->is_used && domain->an == an)
        return NULL; /* a count that began anew would say the same again */
    domain->an = an;
    domain->count = 0;
    domain->is_used = true;
    return NULL;
}

/* Of IPv6 the words are folded so that subnets of 2^16 hosts in networks of 2^16 subnets keep apart. */
static uint32_t id_of(const struct tss *tss, const uint8_t *address)
{
    uint32_t id = be32_load(address);
    if (tss->is_v6) {
        uint32_t subnet = be32_load(address + 4);
        id ^= (subnet << 16 | subnet >> 16) ^ be32_load(address + 8) ^ be32_load(address + 12);
    }
    return id;
}

static uint32_t find_source(const struct tss *tss, uint32_t id, uint32_t domain)
{
    uint32_t at = idmap_find(&tss->by_id, id);
    while (at != IDMAP_NONE && tss->sources[at].domain != domain)
        at = tss->sources[at].next;
    return at;
}

const char *tss_join(struct ep *ep, struct qp *qp, uint32_t sdi, const uint8_t *headers)
{
    struct tss *tss = ep->tss;
    const uint8_t *ip = headers + WIRE_IP_AT, *ours = ip + ip_source_at(ip);
    uint32_t bytes = ip_address_bytes(ip);
    const uint8_t *theirs = ours + bytes;
    const struct domain *domain = find_domain(tss, sdi);
    if (!domain || !domain->is_used)
        return "its domain (sdi) has no key that is in use";
    if (!tss->has_own)
        memcpy(tss->own_address, ours, bytes);
    else if (memcmp(tss->own_address, ours, bytes))
        return "an adapter that encrypts has one address, at its first port";
    tss->has_own = true;
    tss->own_id = id_of(tss, ours);
    uint32_t number = (uint32_t)(domain - tss->domains), id = id_of(tss, theirs);
    uint32_t at = find_source(tss, id, number);
    if (at == IDMAP_NONE) {
        struct idmap_slot *first = idmap_slot(&tss->by_id, id);
        at = tss->n_sources++;
        tss->sources[at] = (struct source){.id = id, .domain = number, .next = first->index};
        memcpy(tss->sources[at].address, theirs, bytes);
        *first = (struct idmap_slot){id, at};
    }
    if (memcmp(tss->sources[at].address, theirs, bytes))
        return "two peers of a domain have addresses that look alike";
    qp->uet->source = at;
    return NULL;
}

/* --- out --------------------------------------------------------------------------------------- */

uint8_t *tss_begin(struct ep *ep, const struct qp *qp, uint8_t *at)
{
    struct tss *tss = ep->tss;
    struct domain *domain = &tss->domains[tss->sources[qp->uet->source].domain];
    tss->sending = domain;
    be32_store(at, domain->sdi);
    at[0] = (uint8_t)(TSS_TYPE << 3 | (tss->has_ssi ? HAS_SSI : 0) | domain->an);
    at += 4;
    if (tss->has_ssi) {
        be32_store(at, tss->own_id);
        at += TSS_SSI;
    }
    be64_store(at, domain->count++);
    return at + 8;
}

/* A packet's, which its sender says but once. */
static void store_iv(const struct tss *tss, const struct derived *derived, uint32_t id, uint32_t sdi,
                     const uint8_t *count, uint8_t iv[AEAD_IV])
{
    be32_store(iv, tss->is_v6 && !tss->has_ssi ? sdi : id);
    memcpy(iv + 4, count, 8);
    for (int i = 0; i < AEAD_IV; i++)
        iv[i] ^= derived->mask[i];
}

static bool seal(struct tss *tss, const uint8_t *ip, uint8_t *pds, uint8_t *end)
{
    struct slot *slot = &tss->sending->slots[tss->sending->an];
    const uint8_t *said = ip + ip_source_at(ip);
    uint8_t iv[AEAD_IV];
    if (slot->own.turn != slot->turn &&
        !derive(tss, slot, tss->own_id, tss->own_address, true, &slot->own))
        return false;
    store_iv(tss, &slot->own, tss->own_id, tss->sending->sdi, pds - 8, iv);
    return aead_seal(tss->library, slot->own.aead, iv, said, (uint32_t)(pds - said), pds,
                     (uint32_t)(end - pds));
}

void tss_seal(struct ep *ep, uint8_t *pds, uint8_t *end)
{
    if (!seal(ep->tss, ep->frame + WIRE_IP_AT, pds, end)) /* nobody takes it for authentic: it is lost */
        memset(pds, 0, (size_t)(end - pds) + TSS_ICV);
}

/* --- and back ---------------------------------------------------------------------------------- */

/* NULL, or the counter of why a packet of this count may not be new. */
static uint64_t *stale(struct ep *ep, const struct heard *heard, uint64_t count)
{
    if (count >= heard->high)
        return NULL;
    if (heard->high - count > TSS_WINDOW)
        return &ep->counters.rx_tss_late;
    bool has = heard->seen[count % TSS_WINDOW / 64] >> count % 64 & 1;
    return has ? &ep->counters.rx_tss_replayed : NULL;
}

static void note(struct heard *heard, uint64_t count)
{
    if (count >= heard->high + TSS_WINDOW) {
        memset(heard->seen, 0, TSS_WINDOW / 8);
        heard->high = count;
    }
    for (; heard->high <= count; heard->high++)
        heard->seen[heard->high % TSS_WINDOW / 64] &= ~((uint64_t)1 << heard->high % 64);
    heard->seen[count % TSS_WINDOW / 64] |= (uint64_t)1 << count % 64;
}

/* What a source says by a key, which may be a new one. False: memory is short. */
static bool hear(const struct tss *tss, const struct slot *slot, const struct source *source,
                 struct heard *heard)
{
    if (heard->derived.turn == slot->turn)
        return true;
    if (!heard->seen)
        heard->seen = malloc(TSS_WINDOW / 8);
    if (!heard->seen || (tss->library && !derive(tss, slot, source->id, source->address, false,
                                                 &heard->derived)))
        return false;
    memset(heard->seen, 0, TSS_WINDOW / 8);
    heard->high = 0;
    heard->derived.turn = slot->turn;
    return true;
}

/* In the clear from here on; false: it is not authentic, or longer than any of ours. */
static bool decrypt(struct tss *tss, const struct heard *heard, const struct source *source,
                    const uint8_t *ip, struct uet_packet *packet)
{
    const uint8_t *said = ip + ip_source_at(ip), *pds = packet->pds;
    uint8_t iv[AEAD_IV];
    if (packet->there > tss->room)
        return false;
    store_iv(tss, &heard->derived, source->id, tss->domains[source->domain].sdi, pds - 8, iv);
    packet->pds = tss->plain;
    return aead_open(tss->library, heard->derived.aead, iv, said, (uint32_t)(pds - said), pds,
                     tss->plain, packet->there, packet->cut ? NULL : pds + packet->bytes);
}

uint64_t *tss_open(struct ep *ep, const uint8_t *ip, struct uet_packet *packet)
{
    struct tss *tss = ep->tss;
    const uint8_t *header = packet->pds - tss_header_bytes(tss->has_ssi);
    uint8_t first = (uint8_t)(header[0] & ~1u);
    if (first != (TSS_TYPE << 3 | (tss->has_ssi ? HAS_SSI : 0)))
        return &ep->counters.rx_tss_unprotected;
    const struct domain *domain = find_domain(tss, be24_load(header + 1));
    uint32_t id = tss->has_ssi ? be32_load(header + 4) : id_of(tss, ip + ip_source_at(ip));
    uint32_t at = domain ? find_source(tss, id, (uint32_t)(domain - tss->domains)) : IDMAP_NONE;
    if (at == IDMAP_NONE || !domain->slots[header[0] & 1].turn)
        return &ep->counters.rx_tss_unknown;
    struct source *source = &tss->sources[at];
    struct heard *heard = &source->heard[header[0] & 1];
    uint64_t count = be64_load(packet->pds - 8);
    packet->source = at;
    if (count >> COUNTER_BITS || !hear(tss, &domain->slots[header[0] & 1], source, heard))
        return &ep->counters.rx_tss_unknown; /* of another epoch than the first */
    uint64_t *why = packet->cut ? NULL : stale(ep, heard, count);
    if (why)
        return why;
    if (tss->library && !decrypt(tss, heard, source, ip, packet))
        return &ep->counters.rx_tss_forged;
    if (!packet->cut)
        note(heard, count);
    return NULL;
}

bool tss_is_from_peer(const struct ep *ep, const struct qp *qp, const struct uet_packet *packet)
{
    return !ep->tss || packet->source == qp->uet->source;
}
