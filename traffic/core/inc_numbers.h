/* What the numbers of collectives in the network are. They follow from where they stand: of a chunk and
 * a lane the first member has one, and member m has m + 1 times that.
 *
 * Switches add up integers. Floats become such by one power of two for all numbers of a chunk and
 * all members, as large as leaves room for the sum (SwitchML: Sapio et al., NSDI 2021): a number whose
 * exponent is the largest has 30 bits less those that count the members. So sums do not depend on
 * their order, and are off by half of the last bit at most for each member.
 *
 * An exponent is that of IEEE 754, as it stands in the float's bits. The floats here have eight
 * significant bits and up to 16 more from a member's factor, so that what they add up to is known exactly.
 */
#pragma once

#include "inc.h"

void inc_integers(const struct inc_job_config *job, uint32_t chunk, uint32_t *numbers);

/* Whether they are so many times the first member's. */
bool inc_are_integers(const struct inc_job_config *job, uint32_t chunk, uint64_t times,
                      const uint32_t *numbers);

/* The largest of a chunk's floats, and these in fixed point. */
uint8_t inc_exponent(const struct inc_job_config *job, uint32_t chunk);
void inc_floats(const struct inc_job_config *job, uint32_t chunk, uint8_t exponent,
                uint32_t *numbers);

/* Whether they are the sum over all members, and the exponent is the largest of all. */
bool inc_are_floats(const struct inc_job_config *job, uint32_t chunk, uint8_t exponent,
                    const uint32_t *numbers);
