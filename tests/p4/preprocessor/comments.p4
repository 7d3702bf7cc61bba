// Comments of both kinds, also where they look like strings.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.d = 1; // hdr.data.d = 2;
        /* hdr.data.d = 3;
           hdr.data.d = 4; */
        hdr.data.e = /* "not a string */ 5;
    }
}

#include "../include/main.p4"
