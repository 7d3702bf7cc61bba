#include <core.p4>

enum Kind { one, two, three }
enum Color { red }

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    apply {
        Kind k = Kind.tree;
        if (k == Color.red) {}
        x = k;
        error e = error.NoSuch;
    }
}
