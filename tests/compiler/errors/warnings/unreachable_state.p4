#define OWN_PARSER
#include "../../../p4/include/data.p4"

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.data);
        transition accept;
    }
    state island {
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        
    }
}

#include "../../../p4/include/main.p4"
