#include "../../../p4/include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        bit<8> x = 1;
        {
            bit<8> x = 2;
            hdr.data.d = x;
        }
        hdr.data.e = x;
    }
}

#include "../../../p4/include/main.p4"
