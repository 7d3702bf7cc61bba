// A product of 128 bits.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<128> x = (bit<128>)hdr.data.a;
        bit<128> y = (bit<128>)hdr.data.b << 64;
        bit<128> z = x * y;
        hdr.data.a = z[127:96];
        hdr.data.b = z[95:64];
    }
}

#include "../include/main.p4"
