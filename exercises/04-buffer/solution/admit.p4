// The shared buffer: one memory for all ports, and how much of it a queue may take.

struct metadata_t {
    bit<32> size;       // what this packet holds of the memory until it leaves; 0: nothing
    bit<32> memory;     // all there is
    bit<8>  alpha;      // stands for 2^(alpha - 8): 8 is 1, 7 a half
}

#include "net.p4"

register<bit<32>>(512) queued;    // bytes in the queue of each port
register<bit<32>>(1)   held;      // bytes in all of them

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    table routes {
        key = { hdr.ipv4.dst_addr : exact; }
        actions = { forward; }
        default_action = forward(511);
        size = 64;
    }

    action shares(bit<32> memory, bit<8> alpha) {
        meta.memory = memory;
        meta.alpha = alpha;
    }

    table buffer {
        actions = { shares; }
        default_action = shares(0xFFFFFFFF, 8);
    }

    apply {
        routes.apply();
        buffer.apply();
        bit<32> queue;
        bit<32> all;
        bit<32> size = standard_metadata.packet_length;
        queued.read(queue, (bit<32>)standard_metadata.egress_spec);
        held.read(all, 0);

        bit<32> free = meta.memory |-| all;
        bit<48> threshold = ((bit<48>)free << meta.alpha) >> 8;
        if ((bit<48>)(queue + size) <= threshold && size <= free) {
            queued.write((bit<32>)standard_metadata.egress_spec, queue + size);
            held.write(0, all + size);
            meta.size = size;
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {
        bit<32> queue;
        bit<32> all;
        queued.read(queue, (bit<32>)standard_metadata.egress_port);
        held.read(all, 0);
        queued.write((bit<32>)standard_metadata.egress_port, queue - meta.size);
        held.write(0, all - meta.size);
    }
}

NET_SWITCH(ingress, egress)
