/* For programs that need one header and no metadata: before.p4, and hdr.data. */
#include "before.p4"

struct headers_t {
    data_t data;
}

struct metadata_t {
}
