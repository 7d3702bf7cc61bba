#include "../../../p4/include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        clone(CloneType.E2E, 5);
        recirculate_preserving_field_list(0);
    }
}

#include "../../../p4/include/main.p4"
