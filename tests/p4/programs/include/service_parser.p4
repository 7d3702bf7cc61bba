/* From bytes to headers and back: options one by one, the shim's segments, two checksums. */
#ifndef SERVICE_PARSER_P4
#define SERVICE_PARSER_P4

#include "service_headers.p4"

struct port_key_t {
    @match(exact) bit<8> protocol;
    @match(exact) l4_port_t dport;
}

/* Reads TCP's options until the given bytes are used up. */
parser Options(packet_in packet, in bit<7> bytes, inout option_u[MAX_OPTIONS] options) {
    bit<7> left;

    state start {
        left = bytes;
        transition next;
    }
    state next {
        transition select(left) {
            0: accept;
            default: kind;
        }
    }
    state kind {
        transition select(packet.lookahead<bit<8>>()) {
            tcp_option_t.end: short;
            tcp_option_t.nop: short;
            tcp_option_t.mss: mss;
            tcp_option_t.window_scale: scale;
            tcp_option_t.sack_permitted: sack;
            tcp_option_t.timestamps: times;
            default: unknown;
        }
    }
    state short {
        packet.extract(options.next.short);
        left = left - 1;
        transition next;
    }
    state mss {
        verify(left >= 4, error.TcpOptions);
        packet.extract(options.next.mss);
        left = left - 4;
        transition next;
    }
    state scale {
        verify(left >= 3, error.TcpOptions);
        packet.extract(options.next.scale);
        left = left - 3;
        transition next;
    }
    state sack {
        verify(left >= 2, error.TcpOptions);
        packet.extract(options.next.sack);
        left = left - 2;
        transition next;
    }
    state times {
        verify(left >= 10, error.TcpOptions);
        packet.extract(options.next.times);
        left = left - 10;
        transition next;
    }
    state unknown {
        verify(false, error.TcpOptions);
        transition accept;
    }
}

parser ServiceParser(packet_in packet, out headers_t hdr, inout meta_t meta,
                     inout standard_metadata_t std) {
    value_set<port_key_t>(16) shimmed;
    Options() options;

    state start {
        packet.extract(hdr.ethernet);
        meta.direction = direction_t.none;
        transition select(hdr.ethernet.type_) {
            ETH_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.ihl >= WORDS_OF_IPV4, error.Ipv4Options);
        meta.flow.address = { src = hdr.ipv4.src, dst = hdr.ipv4.dst };
        meta.flow.protocol = hdr.ipv4.protocol;
        meta.tcp_len = hdr.ipv4.total_len - ((bit<16>)hdr.ipv4.ihl << 2);
        transition select(hdr.ipv4.ihl) {
            5: upper;
            default: ipv4_options;
        }
    }
    state ipv4_options {
        packet.extract(hdr.ipv4_options, ((bit<32>)hdr.ipv4.ihl - 5) << 5);
        transition upper;
    }
    state upper {
        l4_port_t dport = packet.lookahead<bit<32>>()[15:0];
        transition select(hdr.ipv4.protocol, dport) {
            shimmed: shim;
            default: transport;
        }
    }
    state shim {
        packet.extract(hdr.shim);
        transition select(hdr.shim.count) {
            0: transport;
            default: segment;
        }
    }
    state segment {
        packet.extract(hdr.segments.next);
        transition select(hdr.segments.last.last) {
            1: transport;
            default: segment;
        }
    }
    state transport {
        transition select(hdr.ipv4.fragment, hdr.ipv4.protocol) {
            (0, ip_proto_t.tcp): tcp;
            (0, ip_proto_t.udp): udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.transport.udp);
        meta.flow.port = { src = hdr.transport.udp.sport, dst = hdr.transport.udp.dport };
        transition accept;
    }
    state tcp {
        packet.extract(hdr.transport.tcp);
        meta.flow.port = { src = hdr.transport.tcp.sport, dst = hdr.transport.tcp.dport };
        meta.tcp_flags = hdr.transport.tcp.flags;
        verify(hdr.transport.tcp.offset >= WORDS_OF_TCP, error.TcpOptions);
        meta.option_bytes = (bit<7>)((bit<7>)hdr.transport.tcp.offset << 2) - 20;
        options.apply(packet, meta.option_bytes, hdr.options);
        transition accept;
    }
}

#define IPV4_FIELDS(ip) \
    ip.version, ip.ihl, ip.tos, ip.total_len, ip.identification, ip.flags, ip.fragment, ip.ttl, \
    ip.protocol, ip.src, ip.dst

control ServiceVerify(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && !hdr.ipv4_options.isValid(),
                        { IPV4_FIELDS(hdr.ipv4) }, hdr.ipv4.checksum, HashAlgorithm.csum16);
        verify_checksum(hdr.ipv4_options.isValid(),
                        { IPV4_FIELDS(hdr.ipv4), hdr.ipv4_options.octets }, hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
    }
}

control ServiceUpdate(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && !hdr.ipv4_options.isValid(),
                        { IPV4_FIELDS(hdr.ipv4) }, hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(hdr.ipv4_options.isValid(),
                        { IPV4_FIELDS(hdr.ipv4), hdr.ipv4_options.octets }, hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
        update_checksum_with_payload(
            hdr.transport.udp.isValid() && meta.is_rewritten == 1 && hdr.transport.udp.checksum != 0,
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, hdr.transport.udp.len,
              hdr.transport.udp.sport, hdr.transport.udp.dport, hdr.transport.udp.len },
            hdr.transport.udp.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(
            hdr.transport.tcp.isValid() && meta.is_rewritten == 1 && meta.option_bytes == 0,
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, meta.tcp_len,
              hdr.transport.tcp.sport, hdr.transport.tcp.dport, hdr.transport.tcp.seq,
              hdr.transport.tcp.ack, hdr.transport.tcp.offset, hdr.transport.tcp.reserved,
              hdr.transport.tcp.flags, hdr.transport.tcp.window, hdr.transport.tcp.urgent },
            hdr.transport.tcp.checksum, HashAlgorithm.csum16);
    }
}

control ServiceDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.shim);
        packet.emit(hdr.segments);
        packet.emit(hdr.transport);
        packet.emit(hdr.options);
    }
}

#endif
