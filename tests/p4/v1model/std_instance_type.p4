// A packet from outside is of instance type 0.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.a = std.instance_type;
    }
}

#include "../include/main.p4"
