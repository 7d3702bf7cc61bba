// A digest sends values to the control plane, not the packet.
#include "../include/data.p4"

struct seen_t {
    bit<32> address;
    bit<8>  port;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        digest<seen_t>(1, { hdr.data.a, hdr.data.d });
    }
}

#include "../include/main.p4"
