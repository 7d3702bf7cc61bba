/* Frames that came, kept as a capture: with the check sequence that a veth leaves out. */
#include <stdlib.h>
#include <unistd.h>

#include "pcap.h"

uint32_t crc32_more(uint32_t crc, const uint8_t *p, size_t n); /* core/icrc.h */

struct capture *capture_begin(int file, uint64_t most_bytes, uint32_t snap, bool is_rolling);
void capture_frame(struct capture *capture, const uint8_t *frame, uint32_t length, uint64_t when);
void capture_end(struct capture *capture);

enum { FRAME_MAX = 16384, FCS = 4, RECORD = 16 };

struct capture {
    int file;
    struct pcap *pcap;
    uint64_t most, left;
    uint32_t snap;
    bool is_rolling;
    uint8_t frame[FRAME_MAX + FCS];
};

static bool begin(struct capture *capture)
{
    int own = dup(capture->file);
    capture->left = capture->most;
    capture->pcap = NULL;
    if (own >= 0 && (ftruncate(own, 0) || lseek(own, 0, SEEK_SET))) {
        close(own);
        return false;
    }
    capture->pcap = own < 0 ? NULL : pcap_on(own, true);
    return capture->pcap;
}

/* In a file that is open already, from its beginning; NULL: there is no room. */
struct capture *capture_begin(int file, uint64_t most_bytes, uint32_t snap, bool is_rolling)
{
    struct capture *capture = malloc(sizeof *capture);
    if (!capture)
        return NULL;
    capture->file = file;
    capture->most = most_bytes;
    capture->snap = snap;
    capture->is_rolling = is_rolling;
    if (begin(capture))
        return capture;
    free(capture);
    return NULL;
}

/* What there is no room for is not kept; or all that was kept before it, if it is the last that counts. */
void capture_frame(struct capture *capture, const uint8_t *frame, uint32_t length, uint64_t when)
{
    uint32_t whole = length + FCS;
    uint32_t stored = capture->snap && capture->snap < whole ? capture->snap : whole;
    if (length <= FRAME_MAX && capture->left < stored + RECORD && capture->is_rolling) {
        pcap_close(capture->pcap);
        if (!begin(capture))
            capture->left = 0;
    }
    if (length > FRAME_MAX || capture->left < stored + RECORD)
        return;
    uint32_t sum = crc32_more(0, frame, length);
    memcpy(capture->frame, frame, length);
    for (unsigned i = 0; i < FCS; i++)
        capture->frame[length + i] = (uint8_t)(sum >> (8 * i));
    if (pcap_write(capture->pcap, capture->frame, stored, whole, when))
        capture->left -= stored + RECORD;
    else
        capture->left = 0;
}

void capture_end(struct capture *capture)
{
    if (!capture)
        return;
    pcap_close(capture->pcap);
    free(capture);
}
