// One register for both pipelines, declared outside them.
#include "../include/one_header.p4"

register<bit<8>>(1) last;

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        last.read(hdr.data.b1, 0);
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        last.write(0, hdr.data.b2);
    }
}

#include "../include/after.p4"
