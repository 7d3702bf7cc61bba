// Tables after one another: what one writes the next one matches on.
#include "../include/before.p4"

struct headers_t {
    data_t data;
}

struct metadata_t {
    bit<16> group;
    bit<9> port;
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action set_group(bit<16> group) {
        meta.group = group;
    }
    action set_port(bit<9> port) {
        meta.port = port;
    }
    action rewrite(bit<32> to) {
        hdr.data.w1 = to;
    }
    action drop() {
        mark_to_drop(std);
        exit;
    }
    table groups {
        key = {
            hdr.data.w1: lpm;
        }
        actions = {
            set_group;
            drop;
        }
        default_action = drop();
    }
    table ports {
        key = {
            meta.group: exact;
        }
        actions = {
            set_port;
            drop;
        }
        default_action = drop();
    }
    table rewrites {
        key = {
            meta.port: exact;
        }
        actions = {
            rewrite;
            NoAction;
        }
        default_action = NoAction();
    }
    apply {
        groups.apply();
        ports.apply();
        rewrites.apply();
        std.egress_spec = meta.port;
    }
}

#include "../include/after.p4"
