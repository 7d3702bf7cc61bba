// Every size of the fabric program, in one place.

#ifndef SIZES_P4
#define SIZES_P4

const bit<32> PORTS         = 512;     // all values of a 9-bit port number
const bit<32> ROUTES        = 4096;    // prefixes a switch can know
const bit<32> NEXT_HOPS     = 4096;    // members of all groups together
const bit<32> DROP_REASONS  = 16;      // values of drop_reason_t that can be counted

#endif
