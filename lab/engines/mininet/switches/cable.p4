// Cables: what comes in at one end leaves at the other.
//
// BMv2 has no links: what it sends arrives at once. So each of its ports leads to a port of this
// program's, and that one's other end (the number with the top bit turned) into the fabric, at the
// link's rate and with its delay, which are the traffic manager's doing (switch/rt/traffic_manager.c).

#include <core.p4>
#include <v1model.p4>

struct headers_t {}
struct metadata_t {}

parser nothing(packet_in packet, out headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    state start {
        transition accept;
    }
}

control cross(inout headers_t hdr, inout metadata_t meta,
              inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = standard_metadata.ingress_port ^ 256;
    }
}

control leave(inout headers_t hdr, inout metadata_t meta,
              inout standard_metadata_t standard_metadata) {
    apply {}
}

control no_checksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control no_headers(packet_out packet, in headers_t hdr) {
    apply {}
}

V1Switch(nothing(), no_checksum(), cross(), leave(), no_checksum(), no_headers()) main;
