/* A fabric that is a mobile core's user plane as well: VLANs, MPLS, routes and groups of next hops
 * on one side, GTP-U tunnels, sessions, rates and classes on the other. */
#define V1MODEL_VERSION 20200408
#include <core.p4>
#include <v1model.p4>

#include "include/mobile_parser.p4"
#include "include/mobile_upf.p4"
#include "include/mobile_fabric_blocks.p4"

control MobileIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    PacketIo() packet_io;
    Filtering() filtering;
    Upf() upf;
    Forwarding() forwarding;
    Acl() acl;
    Next() next;
    Qos() qos;

    apply {
        packet_io.apply(hdr, meta, std);
        if (std.parser_error != error.NoError || std.checksum_error == 1) {
            mark_to_drop(std);
            exit;
        }
        filtering.apply(hdr, meta, std);
        if (!meta.skips_forwarding && meta.kind == forwarding_t.ipv4) {
            upf.apply(hdr, meta, std);
        }
        if (!meta.skips_forwarding) {
            forwarding.apply(hdr, meta, std);
        }
        acl.apply(hdr, meta, std);
        next.apply(hdr, meta, std);
        qos.apply(hdr, meta, std);
    }
}

control MobileEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    Tunnel() tunnel;
    Leave() leave;

    apply {
        if (std.egress_port == CPU_PORT) {
            hdr.packet_in = { ingress_port = meta.ingress_port, reason = meta.reason, unused = 0 };
            exit;
        }
        tunnel.apply(hdr, meta, std);
        leave.apply(hdr, meta, std);
    }
}

@pkginfo(name = "mobile_fabric", version = "2.1.0", organization = "closlab",
         contact = "see the repository")
@platform_property(multicast_group_table_size = 128, multicast_group_table_total_replicas = 512)
V1Switch(MobileParser(), MobileVerify(), MobileIngress(), MobileEgress(), MobileUpdate(),
         MobileDeparser()) main;
