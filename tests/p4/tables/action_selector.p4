// A selector takes one member of the group by the hash of what its key names.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action_selector(HashAlgorithm.identity, 16, 4) members;

    action forward(bit<9> port) {
        std.egress_spec = port;
    }
    action drop() {
        mark_to_drop(std);
    }
    table groups {
        key = {
            hdr.data.h1: exact;
            hdr.data.b1: selector;
        }
        actions = {
            forward;
            drop;
        }
        implementation = members;
    }
    apply {
        groups.apply();
    }
}

#include "../include/after.p4"
