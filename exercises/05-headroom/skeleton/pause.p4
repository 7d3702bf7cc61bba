// XOFF, XON and headroom: a port that stops its sender before it has to drop.
//
// What came in by a port and has not left yet is counted in bytes, in `used`. The table says three
// numbers: beyond `xoff` the sender is to be stopped, at `xon` or less it may go on, and what comes
// although it was told to stop has `headroom` bytes of room beyond `xoff`.

struct metadata_t {
    bit<9>  in_port;       // where the packet came from,
    bit<32> size;          // and what it holds of the memory until it leaves
    bit<32> xoff;
    bit<32> xon;
    bit<32> headroom;
    @field_list(1) bit<16> quanta;    // of a pause frame that is to be made: 0xFFFF stop, 0 go on
}

#include "net.p4"

register<bit<32>>(512) used;           // by the port that packets came from: bytes in memory
register<bit<1>>(512)  paused;         // by the same: was its sender told to stop?

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action limits(bit<32> xoff, bit<32> xon, bit<32> headroom) {
        meta.xoff = xoff;
        meta.xon = xon;
        meta.headroom = headroom;
    }

    table profiles {
        key = { standard_metadata.ingress_port : exact; }
        actions = { limits; }
        default_action = limits(0xFFFFFFFF, 0, 0);
        size = 512;
    }

    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    table routes {
        key = { hdr.ipv4.dst_addr : exact; }
        actions = { forward; }
        default_action = forward(511);
        size = 64;
    }

    // A copy of this packet goes back by the port it came from and becomes a pause frame.
    action pause_frame(bit<16> quanta) {
        meta.quanta = quanta;
        clone_preserving_field_list(CloneType.I2E, (bit<32>)standard_metadata.ingress_port, 1);
    }

    apply {
        routes.apply();
        profiles.apply();
        meta.in_port = standard_metadata.ingress_port;
        // TODO 1: count it in `used` and in meta.size, or drop it if it fits neither below XOFF nor
        //         into the headroom beyond; standard_metadata.packet_length is its size
        // TODO 2: if it goes beyond XOFF, and its sender was not told yet, tell it to stop
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    // The packet that is here becomes a pause frame.
    action become_pause_frame() {
        hdr.ethernet.dst_addr = 0x0180C2000001;
        hdr.ethernet.src_addr = 0x020000000001;
        hdr.ethernet.ether_type = 0x8808;
        hdr.ipv4.setInvalid();
        hdr.udp.setInvalid();
        hdr.pfc.setValid();
        hdr.pfc.opcode = 0x0101;
        hdr.pfc.classes = 1 << 3;
        hdr.pfc.timer3 = meta.quanta;
        truncate(60);
    }

    // And of this one a copy, for the port that it came from.
    action pause_frame(bit<16> quanta) {
        meta.quanta = quanta;
        clone_preserving_field_list(CloneType.E2E, (bit<32>)meta.in_port, 1);
    }

    apply {
        if (standard_metadata.instance_type != 0) {    // a copy
            become_pause_frame();
        } else if (meta.size != 0) {
            // TODO 3: what leaves is held no more
            // TODO 4: if that brings a sender that was stopped down to XON, it may go on
        }
    }
}

NET_SWITCH(ingress, egress)
