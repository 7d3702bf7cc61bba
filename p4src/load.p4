// Load: how busy a link has been lately, as a share of its rate, and how much it has sent in all.
//
// The share is a discounting estimator: the bytes sent, forgotten evenly over a window of 2^shift
// ticks. There are no timers here, so what should have been forgotten is, when the next packet leaves.
//
// Reads:  the port, the clock, the packet's length.
// Writes: link_bytes, link_time, link_utilisation, link_sent, meta.utilisation, meta.sent_before.

#ifndef LOAD_P4
#define LOAD_P4

#include "headers.p4"
#include "sizes.p4"

register<bytes_t>(PORTS) link_bytes;          // sent and not forgotten
@times register<tick_t>(PORTS)  link_time;           // when the last packet left
register<bit<32>>(PORTS) link_utilisation;    // as of then, in 1/65536 of the link's rate
register<bit<32>>(PORTS) link_sent;           // bytes, modulo 2^32

control load(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    // per_byte: 65536 / (rate * window), in 2^-32.
    action measure(bit<8> window_shift, bit<64> per_byte) {
        bit<32> link = (bit<32>)standard_metadata.egress_port;
        tick_t now = standard_metadata.egress_global_timestamp;
        bytes_t held;
        tick_t last;
        link_bytes.read(held, link);
        link_time.read(last, link);
        tick_t elapsed = now - last;
        bytes_t forgotten = (bytes_t)(((bit<64>)held * (bit<64>)elapsed) >> window_shift);
        bytes_t kept = (elapsed >> window_shift) != 0 ? 0 : held - forgotten;
        bytes_t sum = kept + standard_metadata.packet_length;
        bit<32> utilisation = (bit<32>)(((bit<64>)sum * per_byte) >> 32);
        link_bytes.write(link, sum);
        link_time.write(link, now);
        link_utilisation.write(link, utilisation);
        meta.utilisation = utilisation;
        bit<32> sent;
        link_sent.read(sent, link);
        meta.sent_before = sent;
        link_sent.write(link, sent + standard_metadata.packet_length);
    }

    table link_loads {
        key = { standard_metadata.egress_port : exact; }
        actions = { measure; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        link_loads.apply();
    }
}

#endif
