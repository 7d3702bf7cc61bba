// A learning bridge: known stations unicast, others flooded; news told by digest.
#include "../include/before.p4"

struct news_t {
    mac_t address;
    bit<9> port;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {
    bool known;
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action known(bit<9> port) {
        if (port == std.ingress_port) {
            meta.known = true;
        }
    }
    action unknown() {
        meta.known = false;
    }
    action forward(bit<9> port) {
        std.egress_spec = port;
    }
    action flood() {
        std.mcast_grp = 1;
    }
    table sources {
        key = {
            hdr.ethernet.src: exact;
        }
        actions = {
            known;
            unknown;
        }
        default_action = unknown();
    }
    table destinations {
        key = {
            hdr.ethernet.dst: exact;
        }
        actions = {
            forward;
            flood;
        }
        default_action = flood();
    }
    apply {
        sources.apply();
        if (!meta.known) {
            digest<news_t>(0, { hdr.ethernet.src, std.ingress_port });
        }
        destinations.apply();
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_port == std.ingress_port) {
            mark_to_drop(std);
        }
    }
}

#include "../include/after.p4"
