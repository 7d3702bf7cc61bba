// A packet of the size links carry: all of it comes through.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.w1 = std.packet_length;
    }
}

#include "../include/after.p4"
