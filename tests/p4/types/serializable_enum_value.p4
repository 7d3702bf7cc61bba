// A serializable enum has the value it was given.
#include "../include/data.p4"

enum bit<8> Proto {
    tcp = 6,
    udp = 17
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        Proto p = Proto.udp;
        hdr.data.d = p;
        hdr.data.e = (bit<8>)Proto.tcp + 1;
    }
}

#include "../include/main.p4"
