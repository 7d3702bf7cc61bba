/* Closes every test program: whatever it did not write itself (see before.p4), and `main`. */
#ifndef OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.data);
        transition accept;
    }
}
#endif

#ifndef OWN_VERIFY
control verify_sums(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}
#endif

#ifndef OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
    }
}
#endif

#ifndef OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
    }
}
#endif

#ifndef OWN_UPDATE
control update_sums(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}
#endif

#ifndef OWN_DEPARSER
control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}
#endif

V1Switch(parse(), verify_sums(), ingress(), egress(), update_sums(), deparse()) main;
