// A direct counter counts by entry, whichever action runs.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) hits;

    action mark() {
        hdr.data.b2 = 1;
        hits.count();
    }
    action pass() {
        hits.count();
    }
    table flows {
        key = {
            hdr.data.b1: exact;
        }
        actions = {
            mark;
            pass;
        }
        default_action = pass();
        counters = hits;
    }
    apply {
        std.egress_spec = 2;
        flows.apply();
    }
}

#include "../include/after.p4"
