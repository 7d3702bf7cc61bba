#include "../../../p4/include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        if (hdr.data.a == 1) {
            exit;
            hdr.data.d = 1;
        }
    }
}

#include "../../../p4/include/main.p4"
