/* Who sees the frames on an interface: the packet sockets of a network namespace. */
#pragma once

#include <sys/types.h>

#include "base.h"

/* What asks for those of the calling thread's namespace; -1 with errno. */
int taps_open(void);
/* Tell of each: of which protocol it sees frames (3: all), on which interface (0: any), its inode. False if
 * there may be more. */
bool taps_each(int fd, void (*tell)(void *context, unsigned protocol, unsigned ifindex, ino_t inode),
               void *context);
