// The preprocessor: macros with and without parameters, joined lines, conditions, other files.
#define WIDTH 8
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define SET(field, value) \
    hdr.data.field = value; \
    hdr.data.b4 = hdr.data.b4 + 1
#define LEVEL 3
#define OLD
#undef OLD
#include "../include/one_header.p4"

#if LEVEL > 2 && defined(WIDTH) && !defined(OLD)
const bit<WIDTH> CHOSEN = 0x11;
#elif LEVEL == 2
const bit<WIDTH> CHOSEN = 0x22;
#else
const bit<WIDTH> CHOSEN = 0x33;
#endif

#ifdef OLD
#error "OLD was taken back"
#endif

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        SET(b1, CHOSEN);
        SET(b2, MAX(hdr.data.b2, hdr.data.b3)); // a comment /* of one kind
#if (LEVEL + 1) * 2 == 8
        SET(b3, 0x44); /* and of
                          the other */
#endif
    }
}

#include "../include/after.p4"
