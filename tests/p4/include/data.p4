/* One header, and a parser for it. A program that tests one thing includes this, writes
 * `control MyIngress`, and includes "main.p4". With OWN_METADATA it declares `metadata` itself.
 */
#include <v1model.p4>

header data_t {
    bit<32> a;
    bit<32> b;
    bit<16> c;
    bit<8>  d;
    bit<8>  e;
}

struct headers {
    data_t data;
}

#ifndef OWN_METADATA
struct metadata {}
#endif

#ifndef OWN_PARSER
parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.data);
        transition accept;
    }
}
#endif
