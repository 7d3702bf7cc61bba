// A counter whose index the entry gives; shared by ingress and egress it would not be.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(8, CounterType.packets) classes;

    action count(bit<32> class) {
        classes.count(class);
    }
    table meters {
        key = {
            hdr.data.b1: exact;
        }
        actions = {
            count;
            NoAction;
        }
        default_action = NoAction();
    }
    apply {
        std.egress_spec = 2;
        meters.apply();
    }
}

#include "../include/after.p4"
