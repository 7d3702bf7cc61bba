// TLV options in any order, by a sub-parser that goes round: a stack of unions.
#include "../include/before.p4"

header kind_t {
    bit<8> kind;
}

header mss_t {
    bit<8> kind;
    bit<8> length;
    bit<16> mss;
}

header data_option_t {
    bit<8> kind;
    bit<8> length;
    varbit<64> data;
}

header_union option_t {
    kind_t nop;
    mss_t mss;
    data_option_t data;
}

header length_t {
    bit<8> bytes;
}

struct headers_t {
    length_t length;
    option_t[6] options;
}

struct metadata_t {
    bit<16> mss;
}

error {
    OptionsTooLong
}

parser Options(packet_in packet, in bit<8> bytes, out option_t[6] options, inout bit<16> mss) {
    bit<8> left = bytes;

    state start {
        transition select(left) {
            0: accept;
            default: one;
        }
    }
    state one {
        transition select(packet.lookahead<bit<8>>()) {
            1: nop;
            2: mss_option;
            default: other;
        }
    }
    state nop {
        packet.extract(options.next.nop);
        left = left - 1;
        transition start;
    }
    state mss_option {
        verify(left >= 4, error.OptionsTooLong);
        mss = packet.lookahead<bit<32>>()[15:0];
        packet.extract(options.next.mss);
        left = left - 4;
        transition start;
    }
    state other {
        bit<8> length = packet.lookahead<bit<16>>()[7:0];
        verify(left >= length, error.OptionsTooLong);
        packet.extract(options.next.data, ((bit<32>)length - 2) << 3);
        left = left - length;
        transition start;
    }
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    Options() options;

    state start {
        packet.extract(hdr.length);
        meta.mss = 536;
        options.apply(packet, hdr.length.bytes, hdr.options, meta.mss);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (std.parser_error == error.OptionsTooLong) {
            std.egress_spec = 3;
        } else if (std.parser_error != error.NoError) {
            std.egress_spec = 4;
        }
        if (hdr.options[0].mss.isValid() && meta.mss > 1000) {
            hdr.options[0].mss.mss = 1000;
        }
    }
}

#include "../include/after.p4"
