"""IOAM's trace (RFC 9197) as leaves begin it; p4src/ioam.p4 knows the other types, too."""

NAMESPACE = 0xC105
# Of the 24 bits: hop limit and node, ports, delay, the namespace's (a link's load), queue, buffer.
TRACE_TYPE = 0xCE1000
NODE_WORDS = TRACE_TYPE.bit_count()  # none of these bits asks for two
MAX_NODES = 10  # whose words an option of 255 bytes has room for
