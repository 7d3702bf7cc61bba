/* The P4_16 core library: what every architecture relies on (P4_16 specification, annex D). */
#ifndef _CORE_P4_
#define _CORE_P4_

error {
    NoError,              // all is well
    PacketTooShort,       // extract ran past the end of the packet
    NoMatch,              // no case of a select applies
    StackOutOfBounds,     // next, last or an index outside a header stack
    HeaderTooShort,       // a varbit field longer than its maximum
    ParserTimeout,        // the parser took too long
    ParserInvalidArgument // an argument the parser cannot work with
}

extern packet_in {
    // Fills a header from the packet and moves past it.
    void extract<T>(out T hdr);
    // The same for a header with one varbit field, whose length in bits is given.
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    // Reads ahead without moving.
    T lookahead<T>();
    void advance(in bit<32> sizeInBits);
    bit<32> length();
}

extern packet_out {
    // Appends a header, if it is valid; of a struct or stack, every valid header in order.
    void emit<T>(in T hdr);
}

// Parsers only: ends parsing with the error unless the condition holds.
extern void verify(in bool check, in error toSignal);

@noWarn("unused")
action NoAction() {}

match_kind {
    exact,
    ternary,
    lpm
}

extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

#endif
