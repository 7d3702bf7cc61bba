// A production-style edge switch: translated types, entry restrictions, selectors, roles, includes.
#define V1MODEL_VERSION 20180101
#include <v1model.p4>
#include "include/edge_headers.p4"
#include "include/edge_parser.p4"
#include "include/edge_routing.p4"
#include "include/edge_policy.p4"

control EdgeIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    Admit() admit;
    Vrf() vrf;
    Fold() fold;
    Route() route;
    Resolve() resolve;
    Acl() acl;
    Enforce() enforce;
    apply {
        if (hdr.packet_out.isValid() && hdr.packet_out.submit_to_ingress == 0) {
            std.egress_spec = (bit<9>)hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            exit;
        }
        hdr.packet_out.setInvalid();
        if (std.parser_error != error.NoError || std.checksum_error == 1) {
            mark_to_drop(std);
            exit;
        }
        admit.apply(hdr, meta);
        vrf.apply(hdr, meta);
        fold.apply(hdr, meta);
        if (meta.admitted == 1 && meta.is_ip) {
            route.apply(hdr, meta);
            resolve.apply(meta, std);
        } else {
            mark_to_drop(std);
        }
        acl.apply(hdr, meta);
        enforce.apply(hdr, meta, std);
    }
}

control EdgeEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action punt() {
        hdr.packet_in = {
            ingress_port = meta.ingress_port,
            target_egress_port = meta.wanted_port,
            unused = 0
        };
    }
    apply {
        if (std.instance_type == 1) {
            if (std.egress_port == CPU_PORT) {
                punt();
            }
            exit;
        }
        if (meta.rewrite.decrement_ttl) {
            hdr.ethernet.src = meta.rewrite.src;
            hdr.ethernet.dst = meta.rewrite.dst;
            if (hdr.ipv4.isValid()) {
                hdr.ipv4.ttl = hdr.ipv4.ttl |-| 1;
                if (hdr.ipv4.ttl == 0) {
                    mark_to_drop(std);
                }
            } else {
                hdr.ipv6.hops = hdr.ipv6.hops |-| 1;
            }
        }
        if (meta.rewrite.vlan != NO_VLAN && hdr.vlan.isValid()) {
            hdr.vlan.id = meta.rewrite.vlan;
        }
    }
}

@pkginfo(name = "edge_switch", version = "1.0.0", organization = "closlab")
@platform_property(multicast_group_table_size = 64)
V1Switch(Layers(), Verify(), EdgeIngress(), EdgeEgress(), Update(), Deparse()) main;
