// Functions of one name told apart by their number of parameters.
#include "../include/data.p4"

bit<8> f(in bit<8> x) {
    return x + 1;
}

bit<8> f(in bit<8> x, in bit<8> y) {
    return x + y;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.d = f(hdr.data.d);
        hdr.data.e = f(hdr.data.e, 3);
    }
}

#include "../include/main.p4"
