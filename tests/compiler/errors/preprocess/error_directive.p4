#ifndef PORTS
#error define PORTS with -D PORTS=n
#endif
