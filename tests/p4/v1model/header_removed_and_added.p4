// A tag pushed and popped: VLAN as it is in the field.
#include "../include/before.p4"

header vlan_t {
    bit<3> pcp;
    bit<1> dei;
    bit<12> vid;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t vlan;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x8100: vlan;
            default: accept;
        }
    }
    state vlan {
        packet.extract(hdr.vlan);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.vlan.isValid()) {
            hdr.ethernet.type = hdr.vlan.type;
            hdr.vlan.setInvalid();
        } else {
            hdr.vlan = { 5, 0, 0x123, hdr.ethernet.type };
            hdr.ethernet.type = 0x8100;
        }
    }
}

#include "../include/after.p4"
