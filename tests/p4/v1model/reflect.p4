// Back by the port it came from; the length is that of the whole packet as it came.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = std.ingress_port;
        hdr.data.w1 = std.packet_length;
        hdr.data.h1 = (bit<16>)std.ingress_port;
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.data.h2 = (bit<16>)std.egress_port;
        hdr.data.w2 = std.packet_length;
        hdr.data.b1 = (bit<8>)std.instance_type;
    }
}

#include "../include/after.p4"
