// Permit: who may say what, and to whom.
//
// Hosts: at a port towards one, a packet has to come from that host's own addresses, and carries no
// header that only switches write. It may steer its packets by micro-segments of the fabric's block if
// it is allowed to; what is in such a carrier is looked at as any packet. Where hosts ask for telemetry themselves, it may be in packets of
// one UDP port, so that a shim cannot claim another. Ports without an entry are not looked at: what
// comes from another switch was looked at where it entered.
// Tenants: a host belongs to a tenant; it reaches its own tenant's hosts only. Tenant 0 has all who
// belong to nobody.
// Access list: the first matching rule, by priority, lets a packet through or ends it. Of a packet
// in fragments the first is told by its ports; the others have none and are nothing without it.
//
// Each asks a table of IPv4 or one of IPv6. What a fabric says of a host's IPv4 alone, its IPv6 is
// not: at that port it has no source that is right.
//
// Reads:  the ingress port, the IP header, hdr.conga, hdr.ioam, hdr.int_head.
// Writes: meta.drop_reason, meta.tenant, meta.tenancy; meta.src_port and meta.dst_port of fragments,
//         which from here on have none.

#ifndef PERMIT_P4
#define PERMIT_P4

#include "headers.p4"
#include "sizes.p4"

control permit(in headers_t hdr, inout metadata_t meta,
               in standard_metadata_t standard_metadata) {
    bool    is_own = false;
    bit<16> own_int_port = 0;
    bit<2>  has_tenants = 0;
    bool    steers = false;
    bit<16> far_tenant = 0;

    // int_port: 0 if no packet of its may carry telemetry. tenants: 0 if there are none at all; 1: told
    // apart by addresses; 2: this one's has a network of its own (vxlan.p4).
    action host(ipv4_addr_t address, ipv4_addr_t mask, bit<16> int_port, bit<2> tenants,
                bit<16> number) {
        is_own = hdr.ipv4.src_addr & mask == address;
        own_int_port = int_port;
        has_tenants = tenants;
        meta.tenant = number;
        meta.tenancy = tenants == 2;
    }

    // sid_block: that of the micro-segments by which it may steer its packets itself; 0: it may not.
    action ipv6_host(ipv6_addr_t address, ipv6_addr_t mask, bit<16> int_port, bit<2> tenants,
                     bit<16> number, bit<32> sid_block) {
        is_own = hdr.ipv6.src_addr & mask == address;
        steers = sid_block != 0 && hdr.carrier.dst_addr[127:96] == sid_block &&
            hdr.carrier.src_addr & mask == address;
        own_int_port = int_port;
        has_tenants = tenants;
        meta.tenant = number;
    }

    table host_ports {
        key = { standard_metadata.ingress_port : exact; }
        actions = { host; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    // Asked of ports that `host_ports` knows.
    table ipv6_host_ports {
        key = { standard_metadata.ingress_port : exact; }
        actions = { ipv6_host; NoAction; }
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

    table ipv6_tenant_hosts {
        key = { hdr.ipv6.dst_addr : exact; }
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

    table ipv6_access_list {
        key = {
            standard_metadata.ingress_port : ternary;
            hdr.ipv6.src_addr              : ternary;
            hdr.ipv6.dst_addr              : ternary;
            hdr.ipv6.next_header           : ternary;
            meta.src_port                  : ternary;
            meta.dst_port                  : ternary;
        }
        actions = { allow; deny; }
        default_action = allow();
        size = RULES;
    }

    apply {
        if (host_ports.apply().hit) {
            if (hdr.ipv6.isValid()) {
                is_own = false;
                ipv6_host_ports.apply();
            }
            if (!is_own) {
                meta.drop_reason = drop_reason_t.FORGED_SOURCE;
            } else if (hdr.conga.isValid() || hdr.ioam.isValid() || (hdr.carrier.isValid() && !steers) ||
                       (hdr.int_head.isValid() &&
                        (own_int_port == 0 || meta.dst_port != own_int_port))) {
                meta.drop_reason = drop_reason_t.FORGED_HEADER;
            } else if (has_tenants == 1) {
                if (hdr.ipv6.isValid()) {
                    ipv6_tenant_hosts.apply();
                } else {
                    tenant_hosts.apply();
                }
                if (far_tenant != meta.tenant) {
                    meta.drop_reason = drop_reason_t.OTHER_TENANT;
                }
            }
        }
        if (meta.drop_reason == drop_reason_t.NONE) {
            if (hdr.ipv6.isValid()) {
                ipv6_access_list.apply();
            } else {
                access_list.apply();
            }
        }
        // More fragments follow: so that all take one path, none has ports.
        if (hdr.ipv4.isValid() && hdr.ipv4.flags[0:0] == 1) {
            meta.src_port = 0;
            meta.dst_port = 0;
        }
    }
}

#endif
