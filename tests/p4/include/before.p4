/* Opens every test program: the standard files, and the header most programs test with.
 *
 * A program includes this, writes the one control, parser or type it is about, and ends with
 * after.p4, which supplies everything it did not write. What a program does write it announces
 * with a #define before after.p4: OWN_PARSER, OWN_VERIFY, OWN_INGRESS, OWN_EGRESS, OWN_UPDATE,
 * OWN_DEPARSER. They are called parse, verify_sums, ingress, egress, update_sums and deparse.
 */
#include <core.p4>
#include <v1model.p4>

typedef bit<48> mac_t;

header ethernet_t {
    mac_t dst;
    mac_t src;
    bit<16> type;
}

// Sixteen bytes to compute with: two words, two halves, four bytes.
header data_t {
    bit<32> w1;
    bit<32> w2;
    bit<16> h1;
    bit<16> h2;
    bit<8> b1;
    bit<8> b2;
    bit<8> b3;
    bit<8> b4;
}
