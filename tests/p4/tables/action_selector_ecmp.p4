// ECMP: the members of a group by a CRC of the flow.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action_selector(HashAlgorithm.crc16, 64, 16) paths;

    action forward(bit<9> port) {
        std.egress_spec = port;
    }
    table groups {
        key = {
            hdr.data.b1: exact;
            hdr.data.w1: selector;
            hdr.data.h1: selector;
        }
        actions = {
            forward;
            NoAction;
        }
        implementation = paths;
        size = 128;
    }
    apply {
        groups.apply();
    }
}

#include "../include/after.p4"
