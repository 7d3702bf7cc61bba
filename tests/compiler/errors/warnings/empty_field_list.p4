#include "../../../p4/include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        resubmit_preserving_field_list(7);
    }
}

#include "../../../p4/include/main.p4"
