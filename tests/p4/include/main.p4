/* Whatever of a V1Switch the program has not written itself: an empty egress, no checksums, a
 * deparser that emits every valid header in order.
 */
#ifndef OWN_EGRESS
control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {}
}
#endif

#ifndef OWN_CHECKSUMS
control MyVerify(inout headers hdr, inout metadata meta) {
    apply {}
}

control MyUpdate(inout headers hdr, inout metadata meta) {
    apply {}
}
#endif

#ifndef OWN_DEPARSER
control Deparse(packet_out pkt, in headers hdr) {
    apply {
        pkt.emit(hdr);
    }
}
#endif

V1Switch(P(), MyVerify(), MyIngress(), MyEgress(), MyUpdate(), Deparse()) main;
