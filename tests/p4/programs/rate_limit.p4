// Marks by a meter's colour: green passes, yellow is marked, red dropped and counted.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    meter(8, MeterType.packets) rates;
    counter(3, CounterType.packets) colours;
    bit<2> colour;

    action meter_it(bit<32> index) {
        rates.execute_meter(index, colour);
    }
    table classes {
        key = {
            hdr.data.b1: range;
        }
        actions = {
            meter_it;
            NoAction;
        }
        default_action = NoAction();
    }
    apply {
        colour = 3;
        std.egress_spec = 2;
        if (classes.apply().hit) {
            colours.count((bit<32>)colour);
            switch (colour) {
                1: {
                    hdr.data.b2 = 0x99;
                }
                2: {
                    mark_to_drop(std);
                }
            }
        }
    }
}

#include "../include/after.p4"
