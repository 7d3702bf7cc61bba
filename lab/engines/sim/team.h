/* Threads that do the same at once, again and again, and wait for each other in between.
 *
 * The caller is one of them, number 0. What each writes in a round all may read in the next. They
 * wait busily at first, for rounds are short and follow each other; where there are fewer
 * processors than threads they sleep.
 */
#pragma once

#include <stdbool.h>

struct team;
typedef void (*team_fn)(void *context, unsigned number);

/* The caller and others, `size` in all; NULL when there can be no more threads. */
struct team *team_new(unsigned size, team_fn work, void *context);
void team_free(struct team *team); /* NULL is fine */

/* A round: everybody works once. Returns when all have: true, or false if it took others longer than
 * `patience` looks after the caller was done. Then they have no processor of their own. */
bool team_round(struct team *team, unsigned patience);
