// mark_to_drop in ingress: nothing leaves, and egress does not run.
#include "../include/one_header.p4"

register<bit<8>>(1) ran;

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.data.b1 == 1) {
            mark_to_drop(std);
        }
        hdr.data.b2 = 7;
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        ran.write(0, hdr.data.b1);
    }
}

#include "../include/after.p4"
