// Controls within controls: parameters of all directions, constructor parameters, tables inside.
#include "../include/one_header.p4"

control Add(inout bit<8> value, in bit<8> times, out bool big)(bit<8> step) {
    action grow(bit<8> by) {
        value = value + by;
    }
    table growth {
        key = {
            times: exact;
        }
        actions = {
            grow;
        }
        default_action = grow(step);
    }
    apply {
        growth.apply();
        big = value > 0x40;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    Add(1) small;
    Add(0x10) large;

    apply {
        std.egress_spec = 2;
        bool first;
        bool second;
        small.apply(hdr.data.b1, hdr.data.b3, first);
        large.apply(hdr.data.b2, hdr.data.b3, second);
        if (first || second) {
            hdr.data.b4 = 0xff;
        }
    }
}

#include "../include/after.p4"
