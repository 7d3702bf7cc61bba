// A parser that extracts nothing leaves the whole packet as payload.
#include "../include/one_header.p4"

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.data.isValid()) {
            mark_to_drop(std);
        }
    }
}

#include "../include/after.p4"
