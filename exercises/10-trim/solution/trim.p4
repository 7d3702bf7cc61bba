// Trimming: a packet that finds no room leaves its payload behind and goes on as a header.

const bit<32> HEADERS = 42;     // Ethernet, IPv4 and UDP
const bit<6>  TRIMMED = 5;      // the DSCP that says so

struct metadata_t {
    bit<32> room;       // bytes that the port's queue may hold
    bit<32> size;       // what this packet holds of it until it leaves; 0: nothing
}

#include "net.p4"

register<bit<32>>(512) queued;    // bytes of whole packets in the queue of each port

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action forward(bit<9> port, bit<32> room) {
        standard_metadata.egress_spec = port;
        meta.room = room;
    }

    table routes {
        key = { hdr.ipv4.dst_addr : exact; }
        actions = { forward; }
        default_action = forward(511, 0);
        size = 64;
    }

    apply {
        routes.apply();
        bit<32> queue;
        queued.read(queue, (bit<32>)standard_metadata.egress_spec);
        bit<32> size = standard_metadata.packet_length;
        if (queue + size <= meta.room) {
            queued.write((bit<32>)standard_metadata.egress_spec, queue + size);
            meta.size = size;
        } else if (hdr.udp.isValid()) {
            standard_metadata.priority = 6;
            hdr.ipv4.dscp = TRIMMED;
            hdr.ipv4.total_len = 28;
            hdr.udp.length = 8;
            hdr.udp.checksum = 0;
            truncate(HEADERS);
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {
        bit<32> queue;
        queued.read(queue, (bit<32>)standard_metadata.egress_port);
        queued.write((bit<32>)standard_metadata.egress_port, queue - meta.size);
    }
}

NET_SWITCH(ingress, egress)
