/* Ranks: processes that share in one simulation, and what they tell each other by MPI.
 *
 * All of them call the same in the same order. Everybody has a mail for everybody, of any length, and
 * all mails change hands at once:
 *
 *     first message: bytes of the mail | its beginning        rest, in pieces
 *
 * MPI is the library that is on this machine, found when it is asked for: Open MPI or one of MPICH's
 * kind. Of either only names and a few numbers are used that its makers promise to keep, so nothing
 * is compiled for one of them, and nothing of theirs is needed to build this.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ranks;

struct mail {
    uint8_t *bytes;
    uint64_t used, room;
};

struct ranks_account {
    uint64_t exchanges;
    uint64_t sent;   /* bytes, to all others */
    uint64_t waited; /* ns, for others or for what they sent */
};

/* Begin, by the library of this name; NULL where there is none, or it cannot. Ends with the process:
 * another rank's end is everybody's. */
struct ranks *ranks_join(const char *library);
uint32_t ranks_number(const struct ranks *ranks);
uint32_t ranks_size(const struct ranks *ranks);
void ranks_account(const struct ranks *ranks, struct ranks_account *account);

/* The last that is called: one after all, in peace, or at any time, ending all others. */
void ranks_leave(struct ranks *ranks);
void ranks_abort(struct ranks *ranks, int code);

/* More room at a mail's end, which is then part of it, on a boundary of 8 bytes: NULL when memory is
 * out. What was handed out before may be elsewhere now. */
void *mail_more(struct mail *mail, uint64_t bytes);

/* Hand over all mails: out[r] to rank r, and in[r] is what it sent; our own are left alone. False
 * when memory is out. */
bool ranks_exchange(struct ranks *ranks, const struct mail *out, struct mail *in);

/* The same of one text, for the ranks below `to`, to whoever has no mails. What rank r sent is at
 * ranks_said() until the next. */
bool ranks_tell(struct ranks *ranks, const uint8_t *text, uint64_t bytes, uint32_t to);
const uint8_t *ranks_said(const struct ranks *ranks, uint32_t rank, uint64_t *bytes);
