// A switch on an enum.
#include "../include/data.p4"

enum Kind { one, nine, other }

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        Kind k = Kind.other;
        if (hdr.data.a == 1) { k = Kind.one; }
        if (hdr.data.a == 9) { k = Kind.nine; }
        switch (k) {
            Kind.one: { hdr.data.d = 11; }
            Kind.nine: { hdr.data.d = 99; }
            default: { hdr.data.d = 0; }
        }
    }
}

#include "../include/main.p4"
