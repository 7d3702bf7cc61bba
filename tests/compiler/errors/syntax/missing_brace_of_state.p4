parser P(packet_in packet, out bit<8> x) {
    state start {
        x = 1;
        transition select(x) {
            1: accept;

control C(inout bit<8> x) {
    apply {}
}

enum Colour {
    red,
    green

control D(inout bit<8> x) {
    apply {}
}
