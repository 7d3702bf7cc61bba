#include "../../../p4/include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        hdr.data.a = hdr.data.d == 0 ? hdr.data.b : hdr.data.d == 1 ? 7 : hdr.data.b;
        hdr.data.b = hdr.data.d == 0 ? hdr.data.b : (hdr.data.d == 1 ? 7 : hdr.data.b);
        hdr.data.c = (hdr.data.d == 0 ? hdr.data.d == 1 : hdr.data.d == 2) ? 4 : hdr.data.c;
    }
}

#include "../../../p4/include/main.p4"
