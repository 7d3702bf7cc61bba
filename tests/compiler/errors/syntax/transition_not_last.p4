parser P(packet_in pkt) {
    state start {
        transition accept;
        verify(true, error.NoError);
    }
}
