// Enums without values: kept in metadata, compared, switched on.
#include "../include/before.p4"

enum Colour {
    red,
    green,
    blue
}

struct headers_t {
    data_t data;
}

struct metadata_t {
    Colour colour;
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.data.b1 == 0) {
            hdr.data.b2 = meta.colour == Colour.red ? 8w0xaa : 8w0xbb;
        } else if (hdr.data.b1 == 1) {
            meta.colour = Colour.green;
        } else {
            meta.colour = Colour.blue;
        }
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        switch (meta.colour) {
            Colour.green: {
                hdr.data.b3 = 2;
            }
            Colour.blue: {
                hdr.data.b3 = 3;
            }
            default: {
                hdr.data.b3 = 1;
            }
        }
    }
}

#include "../include/after.p4"
