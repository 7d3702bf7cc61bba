// Each packet says which way it wants to go: every path through the switch, in one program.
#include <core.p4>
#include <v1model.p4>

const bit<8> FORWARD = 0;
const bit<8> DROP_INGRESS = 1;
const bit<8> DROP_EGRESS = 2;
const bit<8> CLONE_INGRESS = 3;
const bit<8> CLONE_EGRESS = 4;
const bit<8> RESUBMIT = 5;
const bit<8> RECIRCULATE = 6;
const bit<8> MULTICAST = 7;
const bit<8> TRUNCATE = 8;
const bit<8> GROW = 9;
const bit<8> PAUSE = 10;
const bit<8> ASSERT = 11;
const bit<8> EXIT = 12;

// want is the way, arg belongs to it; the rest is filled in on the way out.
header ask_t {
    bit<8>  want;
    bit<8>  port;
    bit<8>  prio;
    bit<32> arg;
}

header told_t {
    bit<8>  instance;
    bit<8>  turns;
    bit<16> rid;
    bit<16> ingress_port;
    bit<16> egress_port;
    bit<32> length;
    bit<32> enq_depth;
    bit<32> deq_depth;
    bit<32> waited;
    bit<64> at;
}

header extra_t { bit<64> filler; }

struct headers_t { ask_t ask; told_t told; extra_t extra; }

struct meta_t {
    @field_list(1)
    bit<8> turns;
    @field_list(1)
    bit<9> first_port;
    bit<8> forgotten;
}

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.ask);
        p.extract(h.told);
        transition accept;
    }
}

control MyIngress(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    @queue_gate register<bit<64>>(4096) gate;
    apply {
        if (!h.ask.isValid() || s.parser_error != error.NoError) {
            mark_to_drop(s);
            exit;
        }
        if (m.turns == 0) {
            m.first_port = s.ingress_port;
        }
        m.forgotten = m.forgotten + 1;
        s.egress_spec = (bit<9>)h.ask.port;
        s.priority = (bit<3>)h.ask.prio;
        if (h.ask.want == DROP_INGRESS) {
            mark_to_drop(s);
        } else if (h.ask.want == CLONE_INGRESS) {
            clone_preserving_field_list(CloneType.I2E, h.ask.arg, 1);
        } else if (h.ask.want == RESUBMIT && (bit<32>)m.turns < h.ask.arg) {
            m.turns = m.turns + 1;
            resubmit_preserving_field_list(1);
        } else if (h.ask.want == MULTICAST) {
            s.mcast_grp = (bit<16>)h.ask.arg;
        } else if (h.ask.want == TRUNCATE) {
            truncate(h.ask.arg);
        } else if (h.ask.want == GROW) {
            h.extra.setValid();
            h.extra.filler = 0x0123456789abcdef;
        } else if (h.ask.want == PAUSE) {
            gate.write((bit<32>)h.ask.port * 8 + (bit<32>)h.ask.prio, (bit<64>)h.ask.arg);
            mark_to_drop(s);
        } else if (h.ask.want == ASSERT) {
            assert(h.ask.arg == 0);
        } else if (h.ask.want == EXIT) {
            exit;
        }
    }
}

control MyEgress(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.told.instance = (bit<8>)s.instance_type;
        h.told.turns = m.turns;
        h.told.rid = s.egress_rid;
        h.told.ingress_port = (bit<16>)s.ingress_port;
        h.told.egress_port = (bit<16>)s.egress_port;
        h.told.length = s.packet_length;
        h.told.enq_depth = (bit<32>)s.enq_qdepth;
        h.told.deq_depth = (bit<32>)s.deq_qdepth;
        h.told.waited = s.deq_timedelta;
        h.told.at = (bit<64>)s.egress_global_timestamp;
        if (h.ask.want == DROP_EGRESS) {
            mark_to_drop(s);
        } else if (h.ask.want == CLONE_EGRESS && s.instance_type == 0) {
            clone_preserving_field_list(CloneType.E2E, h.ask.arg, 1);
        } else if (h.ask.want == RECIRCULATE && (bit<32>)m.turns < h.ask.arg) {
            m.turns = m.turns + 1;
            recirculate_preserving_field_list(1);
        }
    }
}

control Verify(inout headers_t h, inout meta_t m) { apply {} }
control Update(inout headers_t h, inout meta_t m) { apply {} }
control Deparse(packet_out p, in headers_t h) {
    apply {
        p.emit(h.ask);
        p.emit(h.told);
        p.emit(h.extra);
    }
}

V1Switch(Parse(), Verify(), MyIngress(), MyEgress(), Update(), Deparse()) main;
