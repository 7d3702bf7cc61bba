#include "../../../p4/include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        log_msg("{} and {}", { hdr.data.a });
    }
}

#include "../../../p4/include/main.p4"
