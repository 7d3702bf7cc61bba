// Permit: who may talk to whom.
//
// Tenants: a port towards a host belongs to a tenant, and so does every host's address; a host
// reaches its own tenant's hosts only. Tenant 0 has all who belong to nobody. Ports without an entry
// are not looked at: what comes from another switch was looked at where it entered.
// Access list: the first matching rule, by priority, lets a packet through or ends it.
//
// Reads:  the ingress port, hdr.ipv4, meta.src_port, meta.dst_port.
// Writes: meta.drop_reason.

#ifndef PERMIT_P4
#define PERMIT_P4

#include "headers.p4"
#include "sizes.p4"

control permit(in headers_t hdr, inout metadata_t meta,
               in standard_metadata_t standard_metadata) {
    bit<16> tenant = 0;
    bit<16> far_tenant = 0;

    action belongs_to(bit<16> number) {
        tenant = number;
    }

    table tenant_ports {
        key = { standard_metadata.ingress_port : exact; }
        actions = { belongs_to; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    action is_of(bit<16> number) {
        far_tenant = number;
    }

    table tenant_hosts {
        key = { hdr.ipv4.dst_addr : exact; }
        actions = { is_of; NoAction; }
        default_action = NoAction();
        size = HOSTS;
    }

    action allow() {}

    action deny() {
        meta.drop_reason = drop_reason_t.DENIED;
    }

    table access_list {
        key = {
            standard_metadata.ingress_port : ternary;
            hdr.ipv4.src_addr              : ternary;
            hdr.ipv4.dst_addr              : ternary;
            hdr.ipv4.protocol              : ternary;
            meta.src_port                  : ternary;
            meta.dst_port                  : ternary;
        }
        actions = { allow; deny; }
        default_action = allow();
        size = RULES;
    }

    apply {
        if (tenant_ports.apply().hit) {
            tenant_hosts.apply();
            if (far_tenant != tenant) {
                meta.drop_reason = drop_reason_t.OTHER_TENANT;
            }
        }
        access_list.apply();
    }
}

#endif
