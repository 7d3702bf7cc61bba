#define OWN_DEPARSER
#include "../../../p4/include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        
    }
}

control Deparse(packet_out pkt, in headers hdr) {
    apply {
        if (hdr.data.isValid()) {
            pkt.emit(hdr.data);
        }
    }
}

#include "../../../p4/include/main.p4"
