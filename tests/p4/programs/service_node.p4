/* A node that serves: it spreads connections over backends and keeps them there, counts flows in a
 * sketch, bounds what one may send, reads the options of IPv4 and TCP, and runs small functions
 * that a shim in the packet asks for. */
#include <core.p4>
#include <v1model.p4>

#include "include/service_parser.p4"
#include "include/service_blocks.p4"

control ServiceIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    counter(8, CounterType.packets) verdicts;
    Segments() segments;
    Sketch() sketch;
    Balance() balance;
    Rewrite() rewrite;

    apply {
        if (std.parser_error != error.NoError || std.checksum_error == 1) {
            meta.verdict = verdict_t.malformed;
        } else if (!hdr.ipv4.isValid()) {
            meta.verdict = verdict_t.no_service;
        } else if (hdr.ipv4.ttl <= 1) {
            meta.verdict = verdict_t.expired;
        } else {
            segments.apply(hdr, meta);
            balance.apply(hdr, meta, std);
            if (meta.direction == direction_t.to_service) {
                sketch.apply(meta.flow, meta.estimate);
                if (meta.limit != 0 && meta.estimate > meta.limit) {
                    meta.verdict = verdict_t.overload;
                }
            }
            rewrite.apply(hdr, meta);
        }
        verdicts.count((bit<32>)(bit<3>)meta.verdict);
        if (meta.verdict != verdict_t.forward) {
            mark_to_drop(std);
        } else {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        }
    }
}

control ServiceEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action set_source(@id(1) mac_t smac) {
        hdr.ethernet.src = smac;
    }
    table sources {
        key = {
            std.egress_port: exact @name("egress_port");
        }
        actions = {
            set_source;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = 512;
    }
    apply {
        sources.apply();
    }
}

@pkginfo(name = "service_node", version = "0.9.0")
V1Switch(ServiceParser(), ServiceVerify(), ServiceIngress(), ServiceEgress(), ServiceUpdate(),
         ServiceDeparser()) main;
