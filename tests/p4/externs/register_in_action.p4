// A read, a change and a write in one action.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<32>>(8) r;
    action bump(in bit<32> index, out bit<32> value) {
        r.read(value, index);
        value = value + 1;
        r.write(index, value);
    }

    apply {
        std.egress_spec = 2;
        bump((bit<32>)hdr.data.d, hdr.data.a);
    }
}

#include "../include/main.p4"
