/* Packet sockets as /proc tells of them. */
#include "taps.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int taps_open(void) { return open("/proc/thread-self/net/packet", O_RDONLY | O_CLOEXEC); }

bool taps_each(int fd, void (*tell)(void *context, unsigned protocol, unsigned ifindex, ino_t inode),
               void *context)
{
    char text[65536];
    size_t length = 0;
    for (ssize_t got; length < sizeof text - 1; length += (size_t)got) {
        got = pread(fd, text + length, sizeof text - 1 - length, (off_t)length);
        if (got <= 0)
            break;
    }
    text[length] = 0;
    char *save, *line = strtok_r(text, "\n", &save); /* the heading */
    while ((line = strtok_r(NULL, "\n", &save)) != NULL) {
        unsigned protocol, ifindex;
        unsigned long inode;
        /* address, references, type, protocol, interface, running, memory, user, inode */
        if (sscanf(line, "%*s %*s %*s %x %u %*s %*s %*s %lu", &protocol, &ifindex, &inode) != 3)
            return false;
        tell(context, protocol, ifindex, inode);
    }
    return length && length < sizeof text - 1;
}
