// A field whose type is an enum holds any value a packet brings.
#include "../include/before.p4"

enum bit<16> EtherType {
    ipv4 = 0x0800,
    arp = 0x0806,
    ipv6 = 0x86dd
}

header frame_t {
    mac_t dst;
    mac_t src;
    EtherType type;
}

struct headers_t {
    frame_t frame;
}

struct metadata_t {
    EtherType last;
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.frame);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        meta.last = hdr.frame.type;
        if (hdr.frame.type == EtherType.arp) {
            hdr.frame.type = EtherType.ipv4;
        } else if (meta.last == EtherType.ipv6) {
            hdr.frame.dst = (bit<48>)(bit<16>)meta.last;
        }
    }
}

#include "../include/after.p4"
