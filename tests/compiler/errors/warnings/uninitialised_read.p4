#include "../../../p4/include/data.p4"

void get(out bit<8> r) {}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        bit<8> x;
        bit<8> y;
        if (hdr.data.a == 1) {
            y = 1;
        }
        hdr.data.d = x;
        hdr.data.e = y;
        bit<8> z;
        get(z);
        hdr.data.d = z;
    }
}

#include "../../../p4/include/main.p4"
