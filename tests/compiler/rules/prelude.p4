// What every program of the rules begins with.
#include <core.p4>

header h1_t { bit<8> a; bit<8> b; }
header h2_t { bit<8> a; bit<8> b; }
header var_t { varbit<32> v; }
struct s1_t { bit<8> a; bit<8> b; }
struct s2_t { bit<8> a; bit<8> b; }
header_union u_t { h1_t one; h2_t two; }
enum e1_t { x, y }
enum e2_t { x, y }
enum bit<8> n1_t { p = 1, q = 2 }
enum bit<8> n2_t { p = 1, q = 2 }
typedef bit<8> byte_t;
type bit<8> t1_t;
type bit<8> t2_t;
struct box_t<T> { T v; }
struct bag_t<T> { T v; }
extern Cell<T> { Cell(); void put(in T v); T get(); }
extern void any<T>(in T v);
const int nine = 9;
const bit<8> k8 = 3;
