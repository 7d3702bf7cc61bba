// Tables with their other properties: size, a constant default, initial entries.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action mark(bit<8> by) {
        hdr.data.b4 = by;
    }
    table marks {
        key = {
            hdr.data.b1: exact;
        }
        actions = {
            mark;
            @defaultonly NoAction;
        }
        entries = {
            const 1: mark(0x11);
            2: mark(0x22);
        }
        size = 4;
        const default_action = NoAction;
    }
    apply {
        std.egress_spec = 2;
        marks.apply();
    }
}

#include "../include/after.p4"
