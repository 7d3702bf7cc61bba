#include "../../../p4/include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets) c;

    apply {
        c.count();
    }
}

#include "../../../p4/include/main.p4"
