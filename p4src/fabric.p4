// The fabric: one program for every switch of the Clos, leaf or spine, told apart only by tables.
//
// This file is the block diagram. Each block lives in a file of its own name and says there what
// it reads, what it writes and where it stops.

#include <core.p4>
#include <v1model.p4>

#include "parser.p4"
#include "checksums.p4"
#include "account.p4"
#include "classify.p4"
#include "permit.p4"
#include "lose.p4"
#include "route.p4"
#include "sunh.p4"
#include "punt.p4"
#include "usid.p4"
#include "vxlan.p4"
#include "path.p4"
#include "conga.p4"
#include "forward.p4"
#include "buffer.p4"
#include "trim.p4"
#include "pause.p4"
#include "credit.p4"
#include "link.p4"
#include "load.p4"
#include "schedule.p4"
#include "mark.p4"
#include "csig.p4"
#include "notify.p4"
#include "telemetry.p4"
#include "ioam.p4"
#include "report.p4"
#ifdef INC
#include "inc.p4"
#endif
#ifdef PARKING
#include "parking.p4"
#endif

control fabric_ingress(inout headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    account_received() received;
    pause_obey() pauses;
    conga_arrive() conga_end;
    classify() classes;
    lose_received() arrival_losses;
    permit() permissions;
    usid_arrive() usids;
    notify_turn() notifications;
    route() routing;
    sunh() short_addresses;
    punt() control_path;
    usid_depart() steering;
    vxlan_take() tunnel_end;
    vxlan_arrive() tunnel_arrivals;
    vxlan_route() tenants;
    vxlan_depart() tunnels;
    path() paths;
    forward() forwarding;
    telemetry_order() telemetry_orders;
    buffer_admit() admission;
    trim() trimming;
    pause_request() pause_requests;
    pause_ring() pause_timers;
    credit_take() credits;
    credit_ask() credit_questions;
    report_drop() drop_reports;
    account_dropped() drops;
#ifdef INC
    inc() collectives;
#endif
#ifdef PARKING
    park() parking;
#endif

    apply {
#ifdef PARKING
        if (meta.parked) {
            parking.apply(meta, standard_metadata);
            pause_timers.apply(hdr, meta, standard_metadata);
            exit;
        }
#else
        if (hdr.timer.isValid()) {
            if (hdr.timer.cell > TIMER_EARLIEST) {
                credit_questions.apply(hdr, meta, standard_metadata);
            } else {
                pause_timers.apply(hdr, meta, standard_metadata);
            }
            exit;
        }
#endif
        bool is_new = standard_metadata.instance_type == PACKET_NORMAL;
        if (is_new) {
            received.apply(standard_metadata);
        } else {
            standard_metadata.ingress_port = meta.copy_in_port;
            if (hdr.bth.isValid()) {
                notifications.apply(hdr, meta, standard_metadata);
            }
        }

        if (hdr.pfc.isValid()) {
            pauses.apply(hdr, meta, standard_metadata);
        } else {
            if (hdr.vxlan.isValid()) {
                tunnel_arrivals.apply(hdr, meta);
            }
            if (standard_metadata.parser_error != error.NoError) {
                meta.drop_reason = drop_reason_t.MALFORMED;
            } else if (!hdr.ipv4.isValid() && !hdr.ipv6.isValid() &&
                       !hdr.sunh.isValid()) {
                if (meta.drop_reason == drop_reason_t.NONE) {
                    meta.drop_reason = drop_reason_t.NOT_IP;
                }
                if (hdr.credit.isValid()) {
                    credits.apply(hdr, meta, standard_metadata);
                }
            } else if (standard_metadata.checksum_error == 1) {
                meta.drop_reason = drop_reason_t.BAD_CHECKSUM;
            } else {
                classes.apply(hdr, meta, standard_metadata);
                if (is_new) {
                    arrival_losses.apply(meta, standard_metadata);
                }
                if (!hdr.bth.isValid() && !hdr.sunh.isValid()) {
                    permissions.apply(hdr, meta, standard_metadata);
                }
            }

            if (meta.drop_reason == drop_reason_t.NONE) {
                if (hdr.conga.isValid()) {
                    conga_end.apply(hdr, standard_metadata);
                }
                if (hdr.carrier.isValid()) {
                    usids.apply(hdr, meta);
                }
            }
            if (meta.drop_reason == drop_reason_t.NOT_IP ||
                    (meta.tenancy && meta.drop_reason == drop_reason_t.NONE)) {
                tenants.apply(hdr, meta, standard_metadata);
            }
            if (meta.drop_reason == drop_reason_t.NONE) {
#ifdef INC
                if (hdr.inc.isValid()) {
                    collectives.apply(hdr, meta, standard_metadata);
                }
                if (!meta.in_tree)
#endif
                if (hdr.sunh.isValid()) {
                    short_addresses.apply(hdr, meta, standard_metadata);
                } else if (!meta.tenancy) {
                    routing.apply(hdr, meta);
                }
                if (meta.steering != 0) {
                    steering.apply(hdr, meta);
                }
                if (meta.group != 0) {
                    paths.apply(hdr, meta, standard_metadata);
                }
            }
            if (meta.drop_reason == drop_reason_t.NONE) {
                forwarding.apply(hdr, meta, standard_metadata);
                if (meta.drop_reason == drop_reason_t.NONE) {
                    if (meta.vtep != 0) {
                        tunnels.apply(hdr, meta, standard_metadata);
                    }
                    telemetry_orders.apply(hdr, meta, standard_metadata);
                }
            } else if (meta.drop_reason == drop_reason_t.NOT_IP ||
                       meta.drop_reason == drop_reason_t.LINK_LOCAL ||
                       meta.drop_reason == drop_reason_t.FOR_CONTROL) {
                control_path.apply(hdr, meta, standard_metadata);
            } else if (meta.drop_reason == drop_reason_t.FOR_TUNNEL && !meta.tenancy) {
                tunnel_end.apply(hdr, meta, standard_metadata);
            }
            if (meta.drop_reason == drop_reason_t.NONE) {
                admission.apply(meta, standard_metadata);
                if (meta.claim.congested && !meta.claim.credited) {
                    pause_requests.apply(meta, standard_metadata);
                }
            }
        }

        if (meta.drop_reason == drop_reason_t.CREDIT_USED ||
                meta.drop_reason == drop_reason_t.FOR_TUNNEL) {
            mark_to_drop(standard_metadata);
        } else if (meta.drop_reason != drop_reason_t.NONE) {
            if (meta.drop_reason == drop_reason_t.BUFFER_FULL) {
                trimming.apply(hdr, meta, standard_metadata);
            }
            drop_reports.apply(meta);
            if (meta.drop_reason != drop_reason_t.TRIMMED) {
                drops.apply(meta, standard_metadata);
            }
        }
        if (meta.copy_purpose != copy_t.NONE) {
            NOTE_FOR_COPY(standard_metadata.ingress_port, meta.out_port)
            clone_preserving_field_list(CloneType.I2E, meta.copy_session, COPY_FIELDS);
        }
#ifdef PARKING
        if (meta.lossless && meta.drop_reason == drop_reason_t.NONE) {
            parking.apply(meta, standard_metadata);
        }
#endif
    }
}

control fabric_egress(inout headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    buffer_release() release;
    pause_review() pause_reviews;
    credit_review() credit_reviews;
    schedule() schedules;
    link_options() link_orders;
    load() loads;
    mark() marks;
    csig() signals;
    notify_begin() notices_begun;
    conga_note() conga_notes;
    telemetry() telemetries;
    ioam() traces;
    lose_sent() departure_losses;
    vxlan_inside() inside;
    pause_frame() pause_frames;
    credit_frame() credit_frames;
    report() reports;
    report_drop() late_drop_reports;
    account_dropped_late() late_drops;
    account_sent() sent;
#ifdef PARKING
    unpark() unparking;
#endif

    apply {
#ifdef PARKING
        if (meta.lossless && !meta.parked && meta.claim.size != 0) {
            unparking.apply(meta, standard_metadata);
        }
        if (meta.parked) {
            meta.asked = standard_metadata.egress_global_timestamp;
            recirculate_preserving_field_list(PARKED_FIELDS);
            exit;
        }
#endif
        if (meta.claim.size != 0) {
            meta.copy_purpose = copy_t.NONE;    // what ingress wanted was done there
            release.apply(meta, standard_metadata);
            if (meta.lossless) {
                if (meta.claim.credited) {
                    credit_reviews.apply(meta);
                } else {
                    pause_reviews.apply(meta, standard_metadata);
                }
            }
            schedules.apply(meta, standard_metadata);
            link_orders.apply(meta, standard_metadata);
            loads.apply(meta, standard_metadata);
            marks.apply(hdr, meta, standard_metadata);
            if (hdr.csig.isValid() || hdr.csig_wide.isValid()) {
                signals.apply(hdr, meta, standard_metadata);
            }
            if (hdr.conga.isValid()) {
                conga_notes.apply(hdr, meta);
            }
            if (hdr.int_head.isValid() || meta.int_order.wanted) {
                telemetries.apply(hdr, meta, standard_metadata);
            }
            if (hdr.ioam.isValid() || meta.int_order.traces) {
                traces.apply(hdr, meta, standard_metadata);
            }
            departure_losses.apply(meta, standard_metadata);

            if (meta.drop_reason != drop_reason_t.NONE &&
                    meta.drop_reason != drop_reason_t.TRIMMED) {
                late_drop_reports.apply(meta);
                late_drops.apply(meta, standard_metadata);
            } else {
                sent.apply(standard_metadata);
            }
            if (meta.copy_purpose != copy_t.NONE) {
                NOTE_FOR_COPY(meta.claim.in_port, standard_metadata.egress_port)
                clone_preserving_field_list(CloneType.E2E, meta.copy_session, COPY_FIELDS);
            }
        } else {
            inside.apply(hdr);
            if (meta.copy_purpose == copy_t.INT_REPORT ||
                    meta.copy_purpose == copy_t.TRACE_REPORT ||
                    meta.copy_purpose == copy_t.DROP_REPORT) {
                reports.apply(hdr, meta, standard_metadata);
            } else if (meta.copy_purpose == copy_t.PAUSE) {
                pause_frames.apply(hdr, meta, standard_metadata);
            } else if (meta.copy_purpose == copy_t.FLOOD) {
                if (meta.copy_pause) {
                    meta.copy_purpose = copy_t.PAUSE;
                    clone_preserving_field_list(CloneType.E2E,
                                                SESSION_OF(standard_metadata.egress_port),
                                                COPY_FIELDS);
                }
                recirculate_preserving_field_list(FLOOD_FIELDS);
            } else if (meta.copy_purpose == copy_t.NOTICE) {
                notices_begun.apply(hdr, standard_metadata);
            } else if (meta.copy_purpose == copy_t.CREDIT) {
                credit_frames.apply(hdr, meta, standard_metadata);
            } else {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

V1Switch(fabric_parser(), check_ipv4_checksum(), fabric_ingress(), fabric_egress(),
         write_ipv4_checksum(), fabric_deparser()) main;
