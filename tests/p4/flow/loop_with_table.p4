// A table applied in every round of a loop.
#include "../include/before.p4"

struct headers_t {
    data_t data;
}

struct metadata_t {
    bit<8> state;
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action next(bit<8> to) {
        meta.state = to;
    }
    table steps {
        key = {
            meta.state: exact;
        }
        actions = {
            next;
            NoAction;
        }
        default_action = NoAction();
    }
    apply {
        std.egress_spec = 2;
        meta.state = hdr.data.b1;
        for (bit<8> i = 0; i < hdr.data.b2; i = i + 1) {
            if (steps.apply().miss) {
                hdr.data.b3 = i;
                break;
            }
        }
        hdr.data.b4 = meta.state;
    }
}

#include "../include/after.p4"
