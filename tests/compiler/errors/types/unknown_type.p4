struct ethernet_t {}

struct s_t {
    ethernet e;
    nothing_like_it n;
}
