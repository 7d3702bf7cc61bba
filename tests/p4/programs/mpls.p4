// MPLS: push, swap and pop of labels on a stack, the last pop giving back the payload's type.
#include "../include/before.p4"

header label_t {
    bit<20> label;
    bit<3> class;
    bit<1> bottom;
    bit<8> ttl;
}

struct headers_t {
    ethernet_t ethernet;
    label_t[3] labels;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x8847: label;
            default: accept;
        }
    }
    state label {
        packet.extract(hdr.labels.next);
        transition select(hdr.labels.last.bottom) {
            0: label;
            default: accept;
        }
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action push(bit<20> label, bit<9> port) {
        hdr.labels.push_front(1);
        hdr.labels[0].setValid();
        hdr.labels[0].label = label;
        hdr.labels[0].class = 0;
        hdr.labels[0].bottom = (bit<1>)(hdr.ethernet.type != 0x8847);
        hdr.labels[0].ttl = 64;
        hdr.ethernet.type = 0x8847;
        std.egress_spec = port;
    }
    action swap(bit<20> label, bit<9> port) {
        hdr.labels[0].label = label;
        hdr.labels[0].ttl = hdr.labels[0].ttl - 1;
        std.egress_spec = port;
    }
    action pop(bit<9> port) {
        hdr.labels.pop_front(1);
        std.egress_spec = port;
    }
    action drop() {
        mark_to_drop(std);
    }
    table labelled {
        key = {
            hdr.labels[0].label: exact;
        }
        actions = {
            push;
            swap;
            pop;
            drop;
        }
        default_action = drop();
    }
    table unlabelled {
        key = {
            hdr.ethernet.dst: exact;
        }
        actions = {
            push;
            drop;
        }
        default_action = drop();
    }
    apply {
        if (hdr.labels[0].isValid()) {
            labelled.apply();
            if (!hdr.labels[0].isValid()) {
                hdr.ethernet.type = 0x0800;
            }
        } else {
            unlabelled.apply();
        }
    }
}

#include "../include/after.p4"
