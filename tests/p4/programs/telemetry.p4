// A packet that collects a record of each turn it takes through the switch, then leaves.
#include "../include/before.p4"

header shim_t {
    bit<8> count;
    bit<8> limit;
}

header record_t {
    bit<16> port;
    bit<8> turn;
    bit<8> kind;
}

struct headers_t {
    shim_t shim;
    record_t[4] records;
}

struct metadata_t {
    @field_list(1)
    bit<8> turn;
    bit<8> left;
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.shim);
        meta.left = hdr.shim.count;
        transition next;
    }
    state next {
        transition select(meta.left) {
            0: accept;
            default: record;
        }
    }
    state record {
        packet.extract(hdr.records.next);
        meta.left = meta.left - 1;
        transition next;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 7;
        if (hdr.shim.count == 2) {
            clone_preserving_field_list(CloneType.I2E, 1, 1);
        }
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.instance_type == 1) {
            truncate(10);
        } else if (hdr.shim.count < hdr.shim.limit) {
            hdr.records.push_front(1);
            hdr.records[0] = { (bit<16>)std.egress_port, meta.turn, (bit<8>)std.instance_type };
            hdr.shim.count = hdr.shim.count + 1;
            meta.turn = meta.turn + 1;
            recirculate_preserving_field_list(1);
        }
    }
}

#include "../include/after.p4"
