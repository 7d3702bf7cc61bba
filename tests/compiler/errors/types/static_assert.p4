#include <core.p4>

const bool CHECK = static_assert(8w1 == 8w2, "one is not two");
