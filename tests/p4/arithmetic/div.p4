// Division of unsigned numbers.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.a = hdr.data.a / 7;
    }
}

#include "../include/main.p4"
