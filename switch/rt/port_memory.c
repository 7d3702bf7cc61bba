/* Frames one behind the other in a growing buffer. */
#include "port_memory.h"

#include <stdlib.h>

struct memory_port {
    struct memory_box *box;
    uint32_t number;
};

struct memory_box *memory_box_new(void) { return calloc(1, sizeof(struct memory_box)); }

void memory_box_free(struct memory_box *box)
{
    if (box)
        free(box->bytes);
    free(box);
}

const void *memory_box_take(struct memory_box *box, size_t *size)
{
    *size = box->used;
    box->used = 0;
    return box->bytes;
}

static bool memory_send(void *driver, const uint8_t *frame, uint32_t len, ns_t when)
{
    struct memory_port *port = driver;
    struct memory_box *box = port->box;
    size_t need = sizeof(struct memory_frame) + (len + 7) / 8 * 8;
    if (box->used + need > box->room) {
        size_t room = (box->used + need) * 2;
        uint8_t *bytes = realloc(box->bytes, room);
        if (!bytes)
            return false;
        box->bytes = bytes;
        box->room = room;
    }
    struct memory_frame head = {when, port->number, len};
    memcpy(box->bytes + box->used, &head, sizeof head);
    memcpy(box->bytes + box->used + sizeof head, frame, len);
    box->used += need;
    return true;
}

static void memory_close(void *driver) { free(driver); }

static const struct port_ops memory_ops = {.send = memory_send, .close = memory_close};

bool memory_attach(struct sw *sw, uint32_t number, struct memory_box *box)
{
    struct memory_port *port = malloc(sizeof *port);
    if (!port)
        return false;
    *port = (struct memory_port){box, number};
    if (sw_attach(sw, number, &memory_ops, port))
        return true;
    free(port);
    return false;
}
