/* A fixed-function switch written down in P4, as operating systems of switches do to say what they
 * expect of it: names instead of numbers, restrictions on entries, roles, three access lists,
 * groups of weighted ways, tunnels, mirrors with a header of their own, and multicast. */
#define V1MODEL_VERSION 20200408
#include <core.p4>
#include <v1model.p4>

#include "include/fixed_parser.p4"
#include "include/fixed_acls.p4"
#include "include/fixed_routing.p4"

control FixedIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    Admission() admission;
    Decapsulation() decapsulation;
    AclPreIngress() acl_pre_ingress;
    Routes() routes;
    AclIngress() acl_ingress;
    Resolution() resolution;
    Mirrors() mirrors;

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
        mark_to_drop(std);
        admission.apply(hdr, meta);
        decapsulation.apply(hdr, meta);
        acl_pre_ingress.apply(hdr, meta);
        routes.apply(hdr, meta, std);
        acl_ingress.apply(hdr, meta, std);
        resolution.apply(meta, std);
        mirrors.apply(meta);
        if (meta.acl_drops == 1) {
            mark_to_drop(std);
        }
    }
}

control FixedEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    Rewrites() rewrites;
    MirrorHeaders() mirror_headers;
    AclEgress() acl_egress;

    action punt() {
        hdr.packet_in = {
            ingress_port = meta.ingress_port,
            target_egress_port = meta.target_port,
            unused_pad = 0
        };
    }
    apply {
        if (std.instance_type == CLONED) {
            if (std.egress_port == CPU_PORT) {
                punt();
            } else {
                mirror_headers.apply(hdr, meta, std);
            }
            exit;
        }
        rewrites.apply(hdr, meta, std);
        acl_egress.apply(hdr, meta, std);
    }
}

@pkginfo(name = "fixed_function", version = "3.0.1", organization = "closlab")
@platform_property(multicast_group_table_size = 256, multicast_group_table_total_replicas = 4096,
                   multicast_group_table_max_replicas_per_entry = 512)
V1Switch(FixedParser(), FixedVerify(), FixedIngress(), FixedEgress(), FixedUpdate(),
         FixedDeparser()) main;
