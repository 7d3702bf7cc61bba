// A condition checked by the compiler.
#include "../include/data.p4"

const bit<8> LIMIT = 7;
const bool CHECKED = static_assert(LIMIT < 8, "the limit must fit three bits");

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.d = LIMIT;
    }
}

#include "../include/main.p4"
