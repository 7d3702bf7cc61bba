// INC: collectives in the network. Switches add up what all members of a job send, and give everybody
// the result (docs/inc.md has the protocol and whose ideas these are).
//
// A job's switches are a tree that the controller chose. Data is cut into chunks, numbered from 1 for
// as long as the job lasts. Chunk c has a cell of its own at every switch of the tree, (c - 1) modulo as
// many as the job has, which are two for each slot: a member sends a chunk only when it has the result
// of the one that many slots before, so nobody needs a cell any more when its next chunk comes.
//
//     part   from a child: added up, once for each child; when all are there the sum goes up as this
//            switch's own part, or, at the root, is the result
//     result from above, or made here: kept, and given to every child
//
// Nothing is timed here. A member that misses a result sends its part again: if the result is here it
// gets it, if only what is above is missing the sum goes up again, and else the part was heard before.
// So losses, repetitions and disorder change no sum: a chunk's number tells what is old.
//
// A part may come without data, which counts as zeros, and a result goes without to who is not its
// owner: so the same does for all-reduce, reduce-scatter, all-gather, broadcast and barrier.
//
// Reads:  hdr.inc, hdr.vector, the ingress port, meta.flood_step.
// Writes: hdr.inc, hdr.vector, the IP header, hdr.udp; meta.in_tree: this packet is dealt with;
//         meta.out_port, meta.next_mac, meta.flood_step, meta.copy_*; meta.drop_reason.
// Stops:  a job that is not known here is no concern of ours: its packets are sent to their own sender,
//         and routed so, which tells it. Results leave one after the other, as floods do (vxlan.p4).

#ifndef INC_P4
#define INC_P4

#include "headers.p4"
#include "sizes.p4"

register<bit<32>>(INC_CELLS) inc_chunk;       // that the cell is for
register<bit<64>>(INC_CELLS) inc_heard;       // children whose parts are in, a bit each
register<bit<8>>(INC_CELLS)  inc_state;       // INC_HAS_RESULT, INC_HAS_DATA
register<bit<8>>(INC_CELLS)  inc_exponent;    // the largest so far
register<lanes_t>(INC_CELLS) inc_sum_a;
register<lanes_t>(INC_CELLS) inc_sum_b;
register<lanes_t>(INC_CELLS) inc_sum_c;
register<lanes_t>(INC_CELLS) inc_sum_d;

control inc(inout headers_t hdr, inout metadata_t meta,
            inout standard_metadata_t standard_metadata) {
    bit<32>     cell = 0;
    bit<64>     children = 0;     // of the tree at this switch,
    bit<64>     child = 0;        // and the one it came from; 0: it came from the parent
    bit<16>     step = 0;         // at which results go to that one
    bool        is_root = false;
    port_t      parent = 0;
    mac_t       parent_mac = 0;
    ipv4_addr_t own_address = 0;
    bit<16>     next = 0;
    bool        has_data = false;

    // cell_mask: how many cells the job has, a power of two, less one.
    action inc_tree(bit<32> first_cell, bit<32> cell_mask, bit<64> all_children, bit<1> root,
                    port_t up, mac_t up_mac, ipv4_addr_t address) {
        cell = first_cell + ((hdr.inc.chunk - 1) & cell_mask);
        children = all_children;
        is_root = root == 1;
        parent = up;
        parent_mac = up_mac;
        own_address = address;
    }

    table inc_trees {
        key = { hdr.inc.job : exact; }
        actions = { inc_tree; NoAction; }
        default_action = NoAction();
        size = INC_JOBS;
    }

    action inc_child(bit<64> number, bit<16> result_step) {
        child = number;
        step = result_step;
    }

    action inc_parent() {}

    action inc_stranger() {
        meta.drop_reason = drop_reason_t.FOREIGN_PART;
    }

    table inc_neighbours {
        key = {
            hdr.inc.job                    : exact;
            standard_metadata.ingress_port : exact;
        }
        actions = { inc_child; inc_parent; inc_stranger; }
        default_action = inc_stranger();
        size = INC_NEIGHBOURS;
    }

    // A result goes to a child below which members `first` to `last` are, and then on to step `after`,
    // if that is not 0; the first step is 1. An IPv4 address is the last 32 bits.
    action inc_give(port_t port, mac_t mac, ipv6_addr_t address, bit<16> first, bit<16> last,
                    bit<16> after) {
        meta.out_port = port;
        meta.next_mac = mac;
        next = after;
        has_data = hdr.inc.owner == INC_EVERYBODY ||
            (first <= hdr.inc.owner && hdr.inc.owner <= last);
        hdr.inc.kind = inc_kind_t.RESULT;
        hdr.ipv4.src_addr = own_address;
        hdr.ipv4.dst_addr = address[31:0];
        hdr.ipv4.ttl = 64;
        hdr.ipv6.src_addr = 96w0xFFFF ++ own_address;
        hdr.ipv6.dst_addr = address;
        hdr.ipv6.hop_limit = 64;
    }

    action inc_nowhere() {
        meta.drop_reason = drop_reason_t.FOREIGN_PART;
    }

    table inc_steps {
        key = {
            hdr.inc.job     : exact;
            meta.flood_step : exact;
        }
        actions = { inc_give; inc_nowhere; }
        default_action = inc_nowhere();
        size = INC_NEIGHBOURS;
    }

    // The highest bit of every number: without these none carries into the next.
    #define HIGH4   (32w0x80000000 ++ 32w0x80000000 ++ 32w0x80000000 ++ 32w0x80000000)
    #define HIGH16  (HIGH4 ++ HIGH4 ++ HIGH4 ++ HIGH4)
    #define HIGH    (HIGH16 ++ HIGH16 ++ HIGH16 ++ HIGH16)
    #define SUM(x, y) ((((x) & ~HIGH) + ((y) & ~HIGH)) ^ (((x) ^ (y)) & HIGH))

    action add() {
        lanes_t a; lanes_t b; lanes_t c; lanes_t d;
        inc_sum_a.read(a, cell);
        inc_sum_b.read(b, cell);
        inc_sum_c.read(c, cell);
        inc_sum_d.read(d, cell);
        inc_sum_a.write(cell, SUM(a, hdr.vector.a));
        inc_sum_b.write(cell, SUM(b, hdr.vector.b));
        inc_sum_c.write(cell, SUM(c, hdr.vector.c));
        inc_sum_d.write(cell, SUM(d, hdr.vector.d));
    }

    action keep() {
        inc_sum_a.write(cell, hdr.vector.a);
        inc_sum_b.write(cell, hdr.vector.b);
        inc_sum_c.write(cell, hdr.vector.c);
        inc_sum_d.write(cell, hdr.vector.d);
    }

    action recall() {
        inc_sum_a.read(hdr.vector.a, cell);
        inc_sum_b.read(hdr.vector.b, cell);
        inc_sum_c.read(hdr.vector.c, cell);
        inc_sum_d.read(hdr.vector.d, cell);
    }

    action sized(bit<16> length) {
        hdr.udp.length = length;
        hdr.udp.checksum = 0;
        hdr.ipv4.total_len = length + IPV4_BYTES;
        hdr.ipv6.payload_len = length;
    }

    apply {
        bool is_part = hdr.inc.kind == inc_kind_t.PART;
        bool is_copy = meta.flood_step != 0;
        if ((!is_part && hdr.inc.kind != inc_kind_t.RESULT) || !inc_trees.apply().hit) {
            return;
        }
        inc_neighbours.apply();
        if (is_part && child == 0 && meta.drop_reason == drop_reason_t.NONE) {
            return;                    // the parent knows no such job: back to whose part it was
        }
        meta.in_tree = true;
        if (!is_part && child != 0) {
            meta.drop_reason = drop_reason_t.FOREIGN_PART;
        }
        if (meta.drop_reason != drop_reason_t.NONE) {
            return;
        }

        bit<32> held;
        bit<64> heard;
        bit<8>  cell_state;
        bit<8>  exponent;
        inc_chunk.read(held, cell);
        inc_heard.read(heard, cell);
        inc_state.read(cell_state, cell);
        inc_exponent.read(exponent, cell);
        bit<32> ahead = hdr.inc.chunk - held;
        bool gives = false;
        bool to_one = false;
        bool goes_up = false;

        if (is_copy) {
            gives = ahead == 0 && cell_state & INC_HAS_RESULT != 0;
        } else if (!is_part) {
            if (ahead == 0 && cell_state & INC_HAS_RESULT == 0 && heard == children) {
                cell_state = INC_HAS_RESULT;
                if (hdr.vector.isValid()) {
                    cell_state = INC_HAS_RESULT | INC_HAS_DATA;
                    keep();
                }
                exponent = hdr.inc.exponent;
                gives = true;
            }
        } else if (ahead != 0 && ahead < 0x80000000) {
            heard = child;
            exponent = hdr.inc.exponent;
            cell_state = 0;
            if (hdr.vector.isValid()) {
                cell_state = INC_HAS_DATA;
                keep();
            }
            goes_up = true;
        } else if (ahead == 0 && heard & child == 0) {
            heard = heard | child;
            exponent = hdr.inc.exponent > exponent ? hdr.inc.exponent : exponent;
            if (hdr.vector.isValid()) {
                if (cell_state & INC_HAS_DATA != 0) {
                    add();
                } else {
                    keep();
                }
                cell_state = cell_state | INC_HAS_DATA;
            }
            goes_up = true;
        } else if (ahead == 0 && cell_state & INC_HAS_RESULT != 0) {
            to_one = true;
            gives = true;
        } else if (ahead == 0 && heard == children) {
            goes_up = true;            // again: what was above may be lost
        }
        if (goes_up && heard == children && is_root) {
            cell_state = cell_state | INC_HAS_RESULT;
            gives = true;
            goes_up = false;
        }

        inc_chunk.write(cell, ahead < 0x80000000 && is_part ? hdr.inc.chunk : held);
        inc_heard.write(cell, heard);
        inc_state.write(cell, cell_state);
        inc_exponent.write(cell, exponent);

        hdr.inc.exponent = exponent;
        if (gives) {
            if (!is_copy) {
                meta.flood_step = to_one ? step : 1;
            }
            inc_steps.apply();
            meta.flood_step = next;
            if (next != 0 && !to_one) {
                meta.copy_purpose = copy_t.FLOOD;
                meta.copy_session = SESSION_OF(standard_metadata.ingress_port);
            }
        } else if (goes_up && heard == children) {
            meta.out_port = parent;
            meta.next_mac = parent_mac;
            has_data = cell_state & INC_HAS_DATA != 0;
        } else if (goes_up) {
            meta.drop_reason = drop_reason_t.IN_SUM;
        } else {
            meta.drop_reason = drop_reason_t.OLD_PART;
        }
        if (has_data) {
            hdr.inc.flags = INC_WITH_DATA;
            hdr.vector.setValid();
            recall();
            sized(UDP_BYTES + INC_BYTES + VECTOR_BYTES);
        } else {
            hdr.inc.flags = 0;
            hdr.vector.setInvalid();
            sized(UDP_BYTES + INC_BYTES);
        }
    }
}

#endif
