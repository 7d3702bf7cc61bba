/* Whether one may listen at a port as soon as the id that did so before is destroyed. */
#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>

#include "cm.h"

int rdma_listen(struct rdma_cm_id *, int);

enum { TIMES = 5, SETTLE_US = 50000 }; /* until the library's thread waits for who comes */

int main(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7471)};
    struct rdma_event_channel *channel = rdma_create_event_channel();
    for (int i = 0; i < TIMES; i++) {
        struct rdma_cm_id *id;
        if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
            rdma_bind_addr(id, (struct sockaddr *)&at) || rdma_listen(id, 1)) {
            perror("listening again");
            return 1;
        }
        usleep(SETTLE_US);
        rdma_destroy_id(id);
    }
    rdma_destroy_event_channel(channel);
    return 0;
}
