#include "csig.h"

enum { COMPACT_TOP = 31, WIDE_TOP = 0xFFFFF, SHARE_STEP = 1 << 11 };

/* A compact tag's bucket 1 begins there; each octave above has two. */
static const uint32_t FIRST[CSIG_TYPES] = {[CSIG_ABW] = 32, [CSIG_DELAY] = 16, [CSIG_QUEUE] = 16};

/* A wide tag's step is two to this. */
static const uint8_t SHIFT[CSIG_TYPES] = {[CSIG_ABW] = 3, [CSIG_DELAY] = 3, [CSIG_QUEUE] = 3};

uint32_t csig_bytes(uint16_t ether_type)
{
    return ether_type == ETHERTYPE_CSIG ? CSIG_COMPACT : ether_type == ETHERTYPE_CSIG_WIDE ? CSIG_WIDE : 0;
}

void csig_ask(uint8_t *at, uint32_t bytes, enum csig_type type)
{
    bool is_least = type == CSIG_ABW || type == CSIG_ABW_SHARE;
    if (bytes == CSIG_COMPACT) {
        be16_store(at, ETHERTYPE_CSIG);
        be16_store(at + 2, (uint16_t)((uint32_t)type << 13 | (is_least ? COMPACT_TOP : 0u) << 7));
    } else {
        be16_store(at, ETHERTYPE_CSIG_WIDE);
        be16_store(at + 2, 0);
        be32_store(at + 4, (uint32_t)type << 28 | (is_least ? WIDE_TOP : 0u) << 8);
    }
}

/* The least value of a bucket. */
static uint32_t least_of(enum csig_type type, uint32_t bucket)
{
    if (type == CSIG_ABW_SHARE)
        return bucket * SHARE_STEP;
    return bucket ? (FIRST[type] << (bucket - 1) / 2) * (2 + (bucket - 1) % 2) / 2 : 0;
}

struct csig csig_read(const uint8_t *at, uint32_t bytes)
{
    struct csig csig;
    if (bytes == CSIG_COMPACT) {
        uint32_t word = be16_load(at + 2), bucket = word >> 7 & COMPACT_TOP;
        csig = (struct csig){.type = (uint8_t)(word >> 13), .was_cut = word >> 12 & 1, .locator = word & 0x7F};
        csig.value = csig.type < CSIG_TYPES ? least_of(csig.type, bucket) : 0;
    } else {
        uint32_t word = be32_load(at + 4), steps = word >> 8 & WIDE_TOP;
        csig = (struct csig){
            .type = (uint8_t)(word >> 28), .was_cut = word >> 7 & 1, .locator = be16_load(at + 2)};
        csig.value = csig.type < CSIG_TYPES ? steps << SHIFT[csig.type] : 0;
    }
    return csig;
}
