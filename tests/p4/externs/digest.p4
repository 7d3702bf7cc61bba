// A digest leaves the packet as it is.
#include "../include/before.p4"

struct learned_t {
    bit<32> address;
    bit<9> port;
}

struct headers_t {
    data_t data;
}

struct metadata_t {
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.data.b1 == 1) {
            digest<learned_t>(1, { hdr.data.w1, std.ingress_port });
        }
        hdr.data.b1 = 9;
    }
}

#include "../include/after.p4"
