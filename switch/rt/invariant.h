/* What must hold, or all that comes after means nothing.
 *
 * INVARIANT is for what costs next to nothing, and is always looked at. INVARIANT_CHECKED is for what
 * takes a walk: with CLOSLAB_CHECKED only, as tests, sanitizers and chaos build. The process ends where
 * it is found, with a word that names the place: what it would go on to tell would be wrong.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

__attribute__((cold, noinline, noreturn, unused)) static void invariant_broken(const char *claim,
                                                                               const char *file, int line)
{
    fprintf(stderr, "closlab: a defect of ours, please report it: %s:%d: %s does not hold\n", file, line,
            claim);
    abort();
}

#define INVARIANT(claim)                                                                              \
    do                                                                                                \
        if (__builtin_expect(!(claim), 0))                                                            \
            invariant_broken(#claim, __FILE__, __LINE__);                                             \
    while (0)

#ifdef CLOSLAB_CHECKED
#define INVARIANT_CHECKED(claim) INVARIANT(claim)
#else
#define INVARIANT_CHECKED(claim)                                                                      \
    do                                                                                                \
        (void)sizeof(claim);                                                                          \
    while (0)
#endif
