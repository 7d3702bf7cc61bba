// One lpm key beside exact ones: all exact keys must match first.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action forward(bit<9> port) {
        std.egress_spec = port;
    }
    action drop() {
        mark_to_drop(std);
    }
    table routes {
        key = {
            hdr.data.h1: exact @name("vrf");
            hdr.data.w1: lpm @name("address");
        }
        actions = {
            forward;
            drop;
        }
        const default_action = drop();
    }
    apply {
        routes.apply();
    }
}

#include "../include/after.p4"
