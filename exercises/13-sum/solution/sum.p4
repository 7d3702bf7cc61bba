// In-network sum: a switch that adds up what all workers send, and sends everybody the result.
//
// A vector is cut into chunks. Chunk c goes through slot c % SLOTS of the switch, in version
// (c / SLOTS) % 2. A worker sends a chunk for a slot only when it has the result of the chunk before
// in that slot; so while a version is summed up nobody needs the version before the last, and the
// result of the last is still there for whoever missed it.

#include <core.p4>
#include <v1model.p4>

const bit<16> ETHERTYPE_SUM = 0x88B6;
const bit<32> SLOTS         = 64;
const bit<32> CELLS         = 128;       // SLOTS x 2 versions

typedef bit<2048> lanes_t;               // 64 numbers of 32 bits

// The highest bit of every number.
const bit<128>  HIGH4  = 0x80000000800000008000000080000000;
const bit<512>  HIGH16 = HIGH4 ++ HIGH4 ++ HIGH4 ++ HIGH4;
const lanes_t   HIGH   = HIGH16 ++ HIGH16 ++ HIGH16 ++ HIGH16;

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header sum_t {
    bit<8>  worker;       // who sends, counted from 0
    bit<8>  workers;      // how many there are, 32 at most
    bit<16> slot;
    bit<8>  version;      // 0 or 1
    bit<24> chunk;        // for the workers
}

header vector_t {
    lanes_t a;
    lanes_t b;
    lanes_t c;
    lanes_t d;
}

struct headers_t {
    ethernet_t ethernet;
    sum_t      sum;
    vector_t   vector;
}

struct metadata_t {
    bit<32> cell;         // of the slot in this version,
    bit<32> other;        // and in the other one
    bit<32> me;           // this worker's bit
    bit<32> seen;         // whose chunks are in the cell, a bit each
    bit<32> seen_other;
    bit<8>  count;        // of how many; 0 again when all are
    vector_t held;
}

parser sum_parser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_SUM: parse_sum;
            default: accept;
        }
    }

    state parse_sum {
        packet.extract(hdr.sum);
        packet.extract(hdr.vector);
        transition accept;
    }
}

register<bit<32>>(CELLS) seen;
register<bit<8>>(CELLS)  count;
register<lanes_t>(CELLS) sum_a;
register<lanes_t>(CELLS) sum_b;
register<lanes_t>(CELLS) sum_c;
register<lanes_t>(CELLS) sum_d;

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action to_all() {
        standard_metadata.mcast_grp = 1;
    }

    action back() {
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action recall() {
        sum_a.read(meta.held.a, meta.cell);
        sum_b.read(meta.held.b, meta.cell);
        sum_c.read(meta.held.c, meta.cell);
        sum_d.read(meta.held.d, meta.cell);
    }

    action keep() {
        sum_a.write(meta.cell, hdr.vector.a);
        sum_b.write(meta.cell, hdr.vector.b);
        sum_c.write(meta.cell, hdr.vector.c);
        sum_d.write(meta.cell, hdr.vector.d);
    }

    // Sixty-four additions at once: without the highest bits no number carries into the next.
    #define ADD(x, y) ((((x) & ~HIGH) + ((y) & ~HIGH)) ^ (((x) ^ (y)) & HIGH))

    action add() {
        hdr.vector.a = ADD(hdr.vector.a, meta.held.a);
        hdr.vector.b = ADD(hdr.vector.b, meta.held.b);
        hdr.vector.c = ADD(hdr.vector.c, meta.held.c);
        hdr.vector.d = ADD(hdr.vector.d, meta.held.d);
    }

    apply {
        if (!hdr.sum.isValid()) {
            drop();
            exit;
        }
        meta.cell = (bit<32>)hdr.sum.slot * 2 + (bit<32>)hdr.sum.version;
        meta.other = (bit<32>)hdr.sum.slot * 2 + 1 - (bit<32>)hdr.sum.version;
        meta.me = 32w1 << hdr.sum.worker;
        seen.read(meta.seen, meta.cell);
        seen.read(meta.seen_other, meta.other);
        count.read(meta.count, meta.cell);
        recall();

        if (meta.seen & meta.me != 0) {
            if (meta.count == 0) {
                hdr.vector.a = meta.held.a;
                hdr.vector.b = meta.held.b;
                hdr.vector.c = meta.held.c;
                hdr.vector.d = meta.held.d;
                back();
            } else {
                drop();
            }
        } else {
            seen.write(meta.cell, meta.seen | meta.me);
            seen.write(meta.other, meta.seen_other & ~meta.me);
            if (meta.count != 0) {
                add();
            }
            keep();
            meta.count = meta.count + 1;
            if (meta.count == hdr.sum.workers) {
                meta.count = 0;
                to_all();
            } else {
                drop();
            }
            count.write(meta.cell, meta.count);
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {}
}

control nothing(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control sum_deparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.sum);
        packet.emit(hdr.vector);
    }
}

V1Switch(sum_parser(), nothing(), ingress(), egress(), nothing(), sum_deparser()) main;
