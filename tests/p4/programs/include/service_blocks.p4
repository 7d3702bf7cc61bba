/* The node's services: who is served, by whom, how often, and how its packets are written anew. */
#ifndef SERVICE_BLOCKS_P4
#define SERVICE_BLOCKS_P4

#include "service_headers.p4"

bit<32> at_most(in bit<32> value, in bit<32> limit) {
    if (value > limit) {
        return limit;
    }
    return value;
}

/* A checksum after 16 bits under it changed (RFC 1624). */
bit<16> adjusted(in bit<16> sum, in bit<16> before, in bit<16> after) {
    bit<32> wide = (bit<32>)~sum + (bit<32>)~before + (bit<32>)after;
    wide = (wide & 0xFFFF) + (wide >> 16);
    wide = (wide & 0xFFFF) + (wide >> 16);
    return ~wide[15:0];
}

bit<16> adjusted_32(in bit<16> sum, in bit<32> before, in bit<32> after) {
    bit<16> half = adjusted(sum, before[31:16], after[31:16]);
    return adjusted(half, before[15:0], after[15:0]);
}

/* One row of a count-min sketch: its own array and its own hash of the flow. */
control Row(in flow_t flow, inout bit<32> least)(bit<32> cells, bit<16> salt) {
    register<bit<32>>(cells) counts;
    bit<32> at;
    bit<32> seen;

    apply {
        hash(at, HashAlgorithm.crc32, 32w0, {
            flow.address.src, flow.address.dst, flow.port.src, flow.port.dst, flow.protocol, salt
        }, cells);
        counts.read(seen, at);
        seen = seen |+| 1;
        counts.write(at, seen);
        least = at_most(seen, least);
    }
}

/* How many packets a flow has sent, at most that. */
control Sketch(in flow_t flow, out bit<32> estimate) {
    Row(SKETCH_CELLS, 0x1111) first;
    Row(SKETCH_CELLS, 0x2222) second;
    Row(SKETCH_CELLS >> 1, 0x3333) third;

    apply {
        estimate = 0xFFFFFFFF;
        first.apply(flow, estimate);
        second.apply(flow, estimate);
        third.apply(flow, estimate);
    }
}

/* The functions that a shim's segments ask for, one a node. */
control Segments(inout headers_t hdr, inout meta_t meta) {
    counter(128, CounterType.packets) calls;

    action set_tos(bit<8> tos) {
        hdr.ipv4.tos = tos;
    }
    action limit_mss(bit<16> most) {
        meta.max_mss = most;
    }
    action skip() {}
    table functions {
        key = {
            hdr.segments[0].function: exact @name("function");
            hdr.segments[0].argument: ternary @name("argument");
        }
        actions = {
            set_tos;
            limit_mss;
            skip;
        }
        const default_action = skip;
        const entries = {
            (1, 0x00 &&& 0x80): set_tos(0x28);
            (1, _): set_tos(0xB8);
            (2, _): limit_mss(1200);
        }
    }
    action pop() {
        hdr.segments.pop_front(1);
        hdr.shim.count = hdr.shim.count - 1;
        hdr.ipv4.total_len = hdr.ipv4.total_len - 2;
        meta.functions = meta.functions + 1;
    }
    action end() {
        hdr.ipv4.total_len = hdr.ipv4.total_len - 4;
        hdr.shim.setInvalid();
    }
    apply {
        if (hdr.shim.isValid()) {
            if (hdr.shim.count != 0 && hdr.segments[0].isValid()) {
                calls.count((bit<32>)hdr.segments[0].function);
                functions.apply();
                pop();
            }
            if (hdr.shim.count == 0) {
                end();
            }
        }
    }
}

control Balance(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<16>>(CONNECTIONS) backend_of;
    register<bit<16>>(CONNECTIONS) tag_of;
    @name("permutation") register<bit<16>>(SERVICES * PERMUTATION) permutation;
    direct_counter(CounterType.packets_and_bytes) service_hits;
    direct_counter(CounterType.packets_and_bytes) backend_hits;
    bit<16> tag;
    bit<16> stored_tag;
    bit<16> stored;
    bit<32> at;

    action serve(@id(1) service_id_t service, @id(2) bit<32> limit, @id(3) bit<16> most_mss) {
        service_hits.count();
        meta.direction = direction_t.to_service;
        meta.service = service;
        meta.limit = limit;
        meta.max_mss = most_mss;
    }
    action answer(@id(1) service_id_t service) {
        service_hits.count();
        meta.direction = direction_t.from_service;
        meta.service = service;
    }
    @entry_restriction("
        protocol == 6 || protocol == 17;
    ")
    table services {
        key = {
            meta.flow.address.src: ternary @name("src") @format(IPV4_ADDRESS);
            meta.flow.address.dst: ternary @name("dst") @format(IPV4_ADDRESS);
            meta.flow.protocol: exact @name("protocol");
            meta.flow.port.src: range @name("sport");
            meta.flow.port.dst: range @name("dport");
        }
        actions = {
            serve;
            answer;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        counters = service_hits;
        size = SERVICES;
    }

    @action_restriction("
        // A backend has an address.
        address != 0;
    ")
    action to_backend(@id(1) ipv4_t address, @id(2) l4_port_t l4_port, @id(3) mac_t dmac,
                      @id(4) bit<9> egress_port) {
        backend_hits.count();
        hdr.ipv4.dst = address;
        meta.flow.port.dst = l4_port;
        hdr.ethernet.dst = dmac;
        std.egress_spec = egress_port;
        meta.is_rewritten = 1;
    }
    action no_backend() {
        backend_hits.count();
        meta.verdict = verdict_t.no_backend;
    }
    table backends {
        key = {
            meta.service: exact @name("service");
            meta.backend: exact @name("backend");
        }
        actions = {
            to_backend;
            @defaultonly no_backend;
        }
        const default_action = no_backend;
        counters = backend_hits;
        size = BACKENDS;
    }

    action to_client(@id(1) ipv4_t address, @id(2) l4_port_t l4_port, @id(3) bit<9> egress_port) {
        hdr.ipv4.src = address;
        meta.flow.port.src = l4_port;
        std.egress_spec = egress_port;
        meta.is_rewritten = 1;
    }
    table clients {
        key = {
            meta.service: exact @name("service");
        }
        actions = {
            to_client;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = SERVICES;
    }

    action forward(@id(1) bit<9> egress_port) {
        std.egress_spec = egress_port;
    }
    action nowhere() {
        meta.verdict = verdict_t.no_service;
    }
    table others {
        key = {
            meta.flow.address.dst: lpm @name("dst");
        }
        actions = {
            forward;
            nowhere;
        }
        default_action = nowhere;
        size = 256;
    }

    action find_slot() {
        hash(meta.slot, HashAlgorithm.crc32, 32w0, {
            meta.flow.address.src, meta.flow.address.dst, meta.flow.port.src, meta.flow.port.dst,
            meta.flow.protocol
        }, 32w4096);
        hash(tag, HashAlgorithm.crc16, 16w1, {
            meta.flow.address.src, meta.flow.port.src, meta.flow.address.dst
        }, 16w0xFFFE);
        tag_of.read(stored_tag, meta.slot);
        backend_of.read(stored, meta.slot);
    }
    action choose() {
        hash(meta.permuted, HashAlgorithm.crc16, 16w0, {
            meta.flow.address.src, meta.flow.port.src
        }, 16w251);
        at = (bit<32>)(bit<16>)meta.service * PERMUTATION + (bit<32>)meta.permuted;
        permutation.read(stored, at);
        meta.is_new = 1;
    }
    action remember() {
        tag_of.write(meta.slot, tag);
        backend_of.write(meta.slot, stored);
        digest<new_flow_t>(1, {
            service = (bit<16>)meta.service,
            backend = stored,
            client = meta.flow.address.src,
            client_port = meta.flow.port.src
        });
    }
    action forget() {
        tag_of.write(meta.slot, 0);
    }

    apply {
        switch (services.apply().action_run) {
            serve: {
                find_slot();
                if (stored_tag == tag) {
                    meta.is_known = 1;
                } else {
                    choose();
                }
                meta.backend = (backend_id_t)stored;
                backends.apply();
                if (meta.verdict == verdict_t.forward) {
                    if (meta.is_new == 1) {
                        remember();
                    } else if (hdr.transport.tcp.isValid() && meta.tcp_flags & (FIN | RST) != 0) {
                        forget();
                    }
                }
            }
            answer: { clients.apply(); }
            default: { others.apply(); }
        }
    }
}

/* What the transport header must say after another end was given to the flow.
 *
 * Where TCP has options its checksum is adjusted here, else it is computed anew on the way out. */
control Rewrite(inout headers_t hdr, in meta_t meta) {
    bit<16> sum;

    apply {
        if (hdr.transport.tcp.isValid()) {
            sum = hdr.transport.tcp.checksum;
            sum = adjusted_32(sum, meta.flow.address.src, hdr.ipv4.src);
            sum = adjusted_32(sum, meta.flow.address.dst, hdr.ipv4.dst);
            sum = adjusted(sum, hdr.transport.tcp.sport, meta.flow.port.src);
            sum = adjusted(sum, hdr.transport.tcp.dport, meta.flow.port.dst);
            hdr.transport.tcp.sport = meta.flow.port.src;
            hdr.transport.tcp.dport = meta.flow.port.dst;
            if (meta.max_mss != 0 && meta.tcp_flags & SYN != 0 && hdr.options[0].mss.isValid()) {
                if (hdr.options[0].mss.value > meta.max_mss) {
                    sum = adjusted(sum, hdr.options[0].mss.value, meta.max_mss);
                    hdr.options[0].mss.value = meta.max_mss;
                }
            }
            hdr.transport.tcp.checksum = sum;
        } else if (hdr.transport.udp.isValid()) {
            hdr.transport.udp.sport = meta.flow.port.src;
            hdr.transport.udp.dport = meta.flow.port.dst;
        }
    }
}

#endif
