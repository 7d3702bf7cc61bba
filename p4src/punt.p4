// Punt: what is for the switch itself goes to its control plane, and what that says goes out.
//
// Beside a front port there may be a control port, at which whoever speaks routing protocols for
// the switch listens as if the front port were an interface of its own. What came by a front port
// leaves by its control port as it came, if there is an entry for the port and the kind of frame:
// ARP, IPv6 that stays on its link (neighbour discovery; BGP and BFD between link-local addresses),
// and IPv4 to an address of the switch's own (route.p4). What the control plane says of the first
// two leaves by the front port as it is; what else it says is routed like a packet of anybody's.
//
// Punting is limited by front port: to a frame in `every` ticks, once `burst` ticks' worth of them
// were taken at once. What is too much ends here, so that nobody can keep a control plane busy.
// Both ways travel in PRIORITY_ROUTING, through the shared buffer, and are counted by account.p4.
//
// Reads:  the ingress port, the clock, hdr.ethernet.ether_type, port_down; meta.drop_reason, which
//         says why nobody else took the packet: NOT_IP, LINK_LOCAL or FOR_CONTROL.
// Writes: meta.drop_reason (NONE: it goes on), meta.priority, standard_metadata.priority,
//         meta.out_port, standard_metadata.egress_spec, punt_due.

#ifndef PUNT_P4
#define PUNT_P4

#include "headers.p4"
#include "sizes.p4"
#include "ports.p4"

@times register<tick_t>(PORTS) punt_due;    // by front port: what was punted is worth the time until then

control punt(in headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    bool is_too_much = false;

    action to_control_port(port_t port, tick_t every, tick_t burst) {
        tick_t now = standard_metadata.ingress_global_timestamp;
        tick_t due;
        punt_due.read(due, (bit<32>)standard_metadata.ingress_port);
        due = due < now ? now : due;
        is_too_much = due - now > burst;
        punt_due.write((bit<32>)standard_metadata.ingress_port, is_too_much ? due : due + every);
        meta.out_port = port;
    }

    table punts {
        key = {
            standard_metadata.ingress_port : exact;
            hdr.ethernet.ether_type        : exact;
        }
        actions = { to_control_port; NoAction; }
        default_action = NoAction();
        size = QUEUES;
    }

    action by_front_port(port_t port) {
        meta.out_port = port;
    }

    table control_ports {
        key = { standard_metadata.ingress_port : exact; }
        actions = { by_front_port; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        bool is_taken = false;
        if (meta.drop_reason != drop_reason_t.FOR_CONTROL) {
            is_taken = control_ports.apply().hit;
        }
        if (!is_taken) {
            is_taken = punts.apply().hit;
        }
        if (is_taken) {
            bit<1> down;
            port_down.read(down, (bit<32>)meta.out_port);
            meta.priority = PRIORITY_ROUTING;
            standard_metadata.priority = PRIORITY_ROUTING;
            standard_metadata.egress_spec = meta.out_port;
            if (is_too_much) {
                meta.drop_reason = drop_reason_t.CONTROL_LIMIT;
            } else if (down == 1) {
                meta.drop_reason = drop_reason_t.PORT_DOWN;
            } else {
                meta.drop_reason = drop_reason_t.NONE;
            }
        } else if (meta.drop_reason == drop_reason_t.FOR_CONTROL) {
            meta.drop_reason = drop_reason_t.NO_ROUTE;
        }
    }
}

#endif
