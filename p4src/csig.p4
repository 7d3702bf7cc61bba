// CSIG: a packet's tag keeps what the worst hop of its way had to say (docs/csig.md has the texts).
//
// Sender.   A host puts the tag in, between Ethernet and IP and behind an 802.1Q tag: which signal it
//           asks for, the value that any hop beats, and no locator. Switches put none in.
// Hop.      Works its own value out for the link that the packet leaves by, quantises it as all hops
//           do, and puts it in place of the tag's if it is worse, with its locator.
//             0 ABW      the link's rate that was free lately, Mb/s      the least
//             1 ABW/C    the same as a share of its rate, in 1/65536     the least
//             2 PD       how long the packet was in the switch, ns       the most
//             3 nQD      its queue, as time at the link's rate, ns       the most
//           A tag whose d bit is set (the packet was cut), or that asks for another signal, stays as
//           it is. Where a port's peer does not speak CSIG the tag is taken off.
// Receiver. Tells the sender, which is its transport's concern (traffic/core/csig.h).
//
// A compact tag's value is one of 32 buckets, whose bounds a table has; a wide one's a number of
// steps, a power of two each.
//
// Reads:  hdr.csig or hdr.csig_wide, the port, the clock, meta.utilisation, meta.out_used.
// Writes: hdr.csig or hdr.csig_wide; hdr.ethernet and hdr.vlan (EtherTypes), where a tag is taken off.
// Stops:  a switch that is told nothing lets tags pass. Free rates are as good as load.p4's window.

#ifndef CSIG_P4
#define CSIG_P4

#include "headers.p4"
#include "sizes.p4"

control csig(inout headers_t hdr, in metadata_t meta, in standard_metadata_t standard_metadata) {
    bit<4>  type = 0;
    bit<32> own = 0;         // of this hop, in the signal's unit
    bit<20> value = 0;       // the same as the tag would have it
    bit<7>  stage = 0;       // locators: of a compact tag,
    bit<16> link = 0;        // and of a wide one
    bool    is_least = false;

    // ns_per_byte: in 2^-24; tick: what one lasts, in 1/65536 ns.
    action csig_hop(bit<32> mbps, bit<64> ns_per_byte, bit<64> tick, bit<7> link_stage,
                  bit<16> link_number) {
        bit<64> free = (bit<64>)(0x10000 |-| meta.utilisation);
        bit<64> in_switch = (bit<64>)(standard_metadata.egress_global_timestamp -
                                      standard_metadata.ingress_global_timestamp) * tick;
        bit<64> queued = (bit<64>)meta.out_used * ns_per_byte;
        is_least = type < 2;
        // In brackets, since p4c reads a ? b : c ? d : e from the left.
        own = type == 0 ? (bit<32>)((bit<64>)mbps * free >> 16) :
              (type == 1 ? (bit<32>)free :
              (type == 2 ? (bit<32>)(in_switch >> 16) : (bit<32>)(queued >> 24)));
        stage = link_stage;
        link = link_number;
    }

    action csig_strip() {
        bit<16> network = hdr.csig.isValid() ? hdr.csig.ether_type : hdr.csig_wide.ether_type;
        hdr.ethernet.ether_type = hdr.vlan.isValid() ? hdr.ethernet.ether_type : network;
        hdr.vlan.ether_type = network;
        hdr.csig.setInvalid();
        hdr.csig_wide.setInvalid();
    }

    table csig_links {
        key = { standard_metadata.egress_port : exact; }
        actions = { csig_hop; csig_strip; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    action be_bucket(bit<5> number) {
        value = (bit<20>)number;
    }

    table csig_buckets {
        key = {
            type : exact;
            own  : lpm;
        }
        actions = { be_bucket; NoAction; }
        default_action = NoAction();
        size = 128;          // 32 of each signal
    }

    action be_steps(bit<8> shift) {
        bit<32> steps = own >> shift;
        value = steps > 0xFFFFF ? 0xFFFFF : (bit<20>)steps;
    }

    table csig_steps {
        key = { type : exact; }
        actions = { be_steps; NoAction; }
        default_action = NoAction();
        size = 4;
    }

    apply {
        bit<1> do_not_update;
        if (hdr.csig.isValid()) {
            type = (bit<4>)hdr.csig.type;
            do_not_update = hdr.csig.do_not_update;
        } else {
            type = hdr.csig_wide.type;
            do_not_update = hdr.csig_wide.do_not_update;
        }
        switch (csig_links.apply().action_run) {
            csig_hop: {
                if (hdr.csig.isValid() && do_not_update == 0) {
                    if (csig_buckets.apply().hit &&
                            (is_least ? value < (bit<20>)hdr.csig.signal
                                      : value > (bit<20>)hdr.csig.signal)) {
                        hdr.csig.signal = (bit<5>)value;
                        hdr.csig.locator = stage;
                    }
                } else if (do_not_update == 0) {
                    if (csig_steps.apply().hit &&
                            (is_least ? value < hdr.csig_wide.signal
                                      : value > hdr.csig_wide.signal)) {
                        hdr.csig_wide.signal = value;
                        hdr.csig_wide.locator = link;
                    }
                }
            }
        }
    }
}

#endif
