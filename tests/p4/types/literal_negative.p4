// A negative literal takes the form its type gives it.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.d = (bit<8>)(-8s3);
        hdr.data.e = -1;
    }
}

#include "../include/main.p4"
