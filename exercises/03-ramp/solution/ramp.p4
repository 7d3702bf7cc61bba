// The ECN ramp: marks instead of losses, the more of them the longer the queue.

struct metadata_t {
    bit<32> size;       // of this packet, while it is in the queue
    bit<32> kmin;
    bit<32> kmax;
    bit<32> gradient;   // Pmax / (kmax - kmin), in 2^-32 for each byte
}

#include "net.p4"

register<bit<32>>(512) queued;    // bytes in the queue of each port

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

    apply {
        routes.apply();
        bit<32> before;
        queued.read(before, (bit<32>)standard_metadata.egress_spec);
        meta.size = standard_metadata.packet_length;
        queued.write((bit<32>)standard_metadata.egress_spec, before + meta.size);
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    action ramp(bit<32> kmin, bit<32> kmax, bit<32> gradient) {
        meta.kmin = kmin;
        meta.kmax = kmax;
        meta.gradient = gradient;
    }

    table profiles {
        key = { standard_metadata.egress_port : exact; }
        actions = { ramp; }
        default_action = ramp(0xFFFFFFFF, 0xFFFFFFFF, 0);
        size = 64;
    }

    apply {
        bit<32> queue;      // what waits, this packet included
        queued.read(queue, (bit<32>)standard_metadata.egress_port);
        queued.write((bit<32>)standard_metadata.egress_port, queue - meta.size);

        profiles.apply();
        if (hdr.ipv4.ecn != 0 && queue > meta.kmin) {
            bit<32> draw;
            random(draw, 0, 0xFFFFFFFF);
            if (queue >= meta.kmax || draw < (queue - meta.kmin) * meta.gradient) {
                hdr.ipv4.ecn = 3;
            }
        }
    }
}

NET_SWITCH(ingress, egress)
