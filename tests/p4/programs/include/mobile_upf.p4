/* The user plane of a mobile core: sessions, their rules, rates and tunnels.
 *
 * Reads the parsed headers; writes meta.upf. A packet from a base station loses its tunnel here; a
 * packet to one gets it in egress (Tunnel), once it is known where it goes. */
#ifndef MOBILE_UPF_P4
#define MOBILE_UPF_P4

#include "mobile_headers.p4"

control Upf(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    counter<upf_counter_id_t>(UPF_COUNTERS, CounterType.packets_and_bytes) before_rates;
    counter<bit<4>>(16, CounterType.packets) drops;
    meter<upf_meter_id_t>(UPF_METERS, MeterType.bytes) app_rates;
    meter<upf_meter_id_t>(UPF_METERS, MeterType.bytes) session_rates;
    meter<slice_tc_t>(1 << 6, MeterType.bytes) slice_rates;

    action from_access() {
        meta.upf.from = interface_t.access;
        meta.upf.wanted = true;
    }
    action from_core(@id(1) slice_id_t slice) {
        meta.upf.from = interface_t.core;
        meta.upf.wanted = true;
        meta.slice = slice;
    }
    @id(0x02000301)
    @entry_restriction("dst::prefix_length != 0;")
    table interfaces {
        key = {
            meta.lookup.dst: lpm KEY_ID(1, "dst");
            hdr.outer.gtpu.isValid(): exact KEY_ID(2, "has_gtpu");
        }
        actions = {
            from_access;
            from_core;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 128;
    }

    action no_session() {
        meta.upf.drop = upf_drop_t.no_session;
    }
    action uplink_session(@id(1) upf_meter_id_t session_meter) {
        meta.upf.session_meter = session_meter;
        meta.upf.ue = hdr.ipv4.src;
    }
    @id(0x02000302)
    table sessions_uplink {
        key = {
            hdr.outer.ipv4.dst: exact KEY_ID(1, "n3_address");
            hdr.outer.gtpu.teid: exact KEY_ID(2, "teid");
        }
        actions = {
            uplink_session;
            @defaultonly no_session;
        }
        const default_action = no_session;
        size = UPF_SESSIONS;
    }

    action downlink_session(@id(1) upf_meter_id_t session_meter, @id(2) peer_id_t tunnel_peer) {
        meta.upf.session_meter = session_meter;
        meta.upf.peer = tunnel_peer;
        meta.upf.ue = hdr.ipv4.dst;
    }
    action downlink_buffered(@id(1) upf_counter_id_t counter_id) {
        meta.upf.from = interface_t.buffer;
        meta.upf.counter = counter_id;
        meta.upf.ue = hdr.ipv4.dst;
    }
    @id(0x02000303)
    table sessions_downlink {
        key = {
            hdr.ipv4.dst: exact KEY_ID(1, "ue_address");
        }
        actions = {
            downlink_session;
            downlink_buffered;
            @defaultonly no_session;
        }
        const default_action = no_session;
        size = UPF_SESSIONS;
    }

    action set_app(@id(1) bit<8> app_id) {
        meta.upf.app = app_id;
    }
    @id(0x02000304)
    @entry_restriction("
        // Ports only of what has them.
        l4_port::low != 0 || l4_port::high != 65535 -> protocol == 6 || protocol == 17;
    ")
    table applications {
        key = {
            meta.slice: exact KEY_ID(1, "slice_id");
            meta.lookup.src: lpm KEY_ID(2, "app_address");
            meta.lookup.sport: range KEY_ID(3, "l4_port");
            meta.lookup.protocol: ternary KEY_ID(4, "protocol");
        }
        actions = {
            set_app;
        }
        default_action = set_app(0);
        size = 64;
    }

    action no_termination() {
        meta.upf.drop = upf_drop_t.no_termination;
    }
    action drop_by_rule(@id(1) upf_counter_id_t counter_id) {
        meta.upf.counter = counter_id;
        meta.upf.drop = upf_drop_t.by_rule;
    }
    action uplink_forward(@id(1) upf_counter_id_t counter_id, @id(2) tc_t tc,
                          @id(3) upf_meter_id_t app_meter) {
        meta.upf.counter = counter_id;
        meta.upf.app_meter = app_meter;
        meta.tc = tc;
    }
    @id(0x02000305)
    table terminations_uplink {
        key = {
            meta.upf.ue: exact KEY_ID(1, "ue_address");
            meta.upf.app: exact KEY_ID(2, "app_id");
        }
        actions = {
            uplink_forward;
            drop_by_rule;
            @defaultonly no_termination;
        }
        const default_action = no_termination;
        size = UPF_TERMINATIONS;
    }

    action downlink_forward(@id(1) upf_counter_id_t counter_id, @id(2) tc_t tc, @id(3) teid_t teid,
                            @id(4) qfi_t qfi, @id(5) upf_meter_id_t app_meter) {
        meta.upf.counter = counter_id;
        meta.upf.app_meter = app_meter;
        meta.upf.teid = teid;
        meta.upf.qfi = qfi;
        meta.upf.encapsulates = true;
        meta.tc = tc;
    }
    @id(0x02000306)
    table terminations_downlink {
        key = {
            meta.upf.ue: exact KEY_ID(1, "ue_address");
            meta.upf.app: exact KEY_ID(2, "app_id");
        }
        actions = {
            downlink_forward;
            drop_by_rule;
            @defaultonly no_termination;
        }
        const default_action = no_termination;
        size = UPF_TERMINATIONS;
    }

    action no_peer() {
        meta.upf.drop = upf_drop_t.no_peer;
    }
    action to_peer(@id(1) ipv4_t src, @id(2) ipv4_t dst, @id(3) l4_port_t sport,
                   @id(4) bit<1> with_psc) {
        meta.upf.tunnel_src = src;
        meta.upf.tunnel_dst = dst;
        meta.upf.tunnel_sport = sport;
        meta.upf.with_psc = with_psc == 1;
        meta.lookup.dst = dst;
    }
    @id(0x02000307)
    table tunnel_peers {
        key = {
            meta.upf.peer: exact KEY_ID(1, "tunnel_peer_id");
        }
        actions = {
            to_peer;
            @defaultonly no_peer;
        }
        const default_action = no_peer;
        size = 255;
    }

    action decapsulate() {
        hdr.outer.ipv4.setInvalid();
        hdr.outer.udp.setInvalid();
        hdr.outer.gtpu.setInvalid();
        hdr.outer.options.setInvalid();
        hdr.outer.psc.setInvalid();
        meta.lookup.dst = hdr.ipv4.dst;
        meta.lookup.src = hdr.ipv4.src;
    }

    action tell_of_sleeper() {
        digest<downlink_notice_t>(1, {
            ue = meta.upf.ue,
            counter = meta.upf.counter,
            came_by = meta.ingress_port
        });
    }

    apply {
        if (!interfaces.apply().hit) {
            return;
        }
        if (meta.upf.from == interface_t.access) {
            sessions_uplink.apply();
            // The application is what the handset speaks to: the packet's far end.
            meta.lookup.src = hdr.ipv4.dst;
            meta.lookup.sport = hdr.tcp.isValid() ? hdr.tcp.dport
                : (hdr.udp.isValid() ? hdr.udp.dport : 0);
            meta.lookup.protocol = hdr.ipv4.protocol;
        } else {
            switch (sessions_downlink.apply().action_run) {
                downlink_buffered: {
                    tell_of_sleeper();
                    before_rates.count(meta.upf.counter);
                    mark_to_drop(std);
                    exit;
                }
                default: {}
            }
        }
        if (meta.upf.drop == upf_drop_t.none) {
            applications.apply();
            if (meta.upf.from == interface_t.access) {
                terminations_uplink.apply();
            } else if (terminations_downlink.apply().hit && meta.upf.encapsulates) {
                tunnel_peers.apply();
            }
        }
        if (meta.upf.drop == upf_drop_t.none || meta.upf.drop == upf_drop_t.by_rule) {
            before_rates.count(meta.upf.counter);
        }
        if (meta.upf.drop == upf_drop_t.none) {
            bit<2> colour = 0;
            app_rates.execute_meter(meta.upf.app_meter, colour);
            if (colour == 2) {
                meta.upf.drop = upf_drop_t.app_rate;
            }
            if (meta.upf.drop == upf_drop_t.none) {
                session_rates.execute_meter(meta.upf.session_meter, colour);
                if (colour == 2) {
                    meta.upf.drop = upf_drop_t.session_rate;
                }
            }
            if (meta.upf.drop == upf_drop_t.none) {
                slice_rates.execute_meter((bit<4>)meta.slice ++ (bit<2>)meta.tc, colour);
                meta.metered = colour;
                if (colour == 2) {
                    meta.upf.drop = upf_drop_t.slice_rate;
                }
            }
        }
        drops.count((bit<4>)meta.upf.drop);
        if (meta.upf.drop != upf_drop_t.none) {
            mark_to_drop(std);
            exit;
        }
        if (meta.upf.from == interface_t.access) {
            decapsulate();
        }
    }
}

/* Puts the tunnel round what goes to a base station. */
control Tunnel(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    counter<upf_counter_id_t>(UPF_COUNTERS, CounterType.packets_and_bytes) after_rates;

    action outer_headers(bit<16> extra) {
        hdr.outer.ipv4 = {
            version = 4,
            ihl = 5,
            class = { dscp = hdr.ipv4.class.dscp, ecn = hdr.ipv4.class.ecn },
            total_len = hdr.ipv4.total_len + IPV4_BYTES + UDP_BYTES + extra,
            identification = 0x1513,
            flags = 0,
            fragment = 0,
            ttl = DEFAULT_TTL,
            protocol = ip_proto_t.udp,
            checksum = 0,
            src = meta.upf.tunnel_src,
            dst = meta.upf.tunnel_dst
        };
        hdr.outer.udp = {
            sport = meta.upf.tunnel_sport,
            dport = UDP_GTPU,
            len = hdr.ipv4.total_len + UDP_BYTES + extra,
            checksum = 0
        };
        hdr.outer.gtpu = {
            version = 1,
            protocol_type = 1,
            spare = 0,
            has_extension = 0,
            has_sequence = 0,
            has_npdu = 0,
            message = GTP_GPDU,
            len = hdr.ipv4.total_len + extra - GTPU_BYTES,
            teid = meta.upf.teid
        };
    }
    action add_psc() {
        hdr.outer.gtpu.has_extension = 1;
        hdr.outer.options = { sequence = 0, npdu = 0, next_extension = GTP_EXT_PSC };
        hdr.outer.psc = {
            len = 1,
            type_ = 0,
            spare0 = 0,
            ppp = 0,
            rqi = 0,
            qfi = meta.upf.qfi,
            next_extension = 0
        };
    }
    apply {
        if (!meta.upf.wanted) {
            return;
        }
        after_rates.count(meta.upf.counter);
        if (meta.upf.encapsulates) {
            if (meta.upf.with_psc) {
                outer_headers(GTPU_WITH_PSC);
                add_psc();
            } else {
                outer_headers(GTPU_BYTES);
            }
        }
    }
}

#endif
