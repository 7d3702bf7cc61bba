// Between bool and bit<1>.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bool odd = (bool)hdr.data.d[0:0];
        bit<1> even = (bit<1>)!odd;
        hdr.data.e = (bit<8>)even;
    }
}

#include "../include/main.p4"
