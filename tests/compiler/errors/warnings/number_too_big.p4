#include "../../../p4/include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        hdr.data.d = 300;
        hdr.data.e = 8w0x1FF;
        hdr.data.a = hdr.data.b << 40;
    }
}

#include "../../../p4/include/main.p4"
