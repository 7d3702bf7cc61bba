// mark_to_drop marks what it is given: also what a call copies in and out, as it has another part of it
// for an argument beside it; and of a copy that goes nowhere the packet hears nothing.
#include "../include/data.p4"

control MyDrop(in bit<9> port, inout headers hdr, inout standard_metadata_t std) {
    apply {
        hdr.data.d = (bit<8>)port;
        mark_to_drop(std);
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    MyDrop() dropping;

    apply {
        std.egress_spec = 2;
        if (hdr.data.e == 1) {
            dropping.apply(std.ingress_port, hdr, std);
        } else {
            standard_metadata_t copy = std;
            mark_to_drop(copy);
            hdr.data.d = copy.egress_spec == 2 ? 8w0 : 8w1;
        }
    }
}

#include "../include/main.p4"
