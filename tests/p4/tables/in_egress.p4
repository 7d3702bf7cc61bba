// Tables of egress see the port the packet leaves by.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = (bit<9>)hdr.data.b1;
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action mark(bit<8> by) {
        hdr.data.b2 = by;
    }
    action drop() {
        mark_to_drop(std);
    }
    table ports {
        key = {
            std.egress_port: exact;
        }
        actions = {
            mark;
            drop;
        }
        default_action = mark(0xff);
    }
    apply {
        ports.apply();
    }
}

#include "../include/after.p4"
