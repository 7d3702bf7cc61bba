#include "inc_numbers.h"

enum {
    BITS = 30,            /* of a sum, without its sign and one that rounding may carry into */
    ONE = 127,            /* exponents, of floats */
    ONE_OF_DOUBLES = 1023,
    SIGNIFICANT = 7,      /* bits of a float after the first */
    CHUNK_EXPONENTS = 64, /* that chunks have, */
    LANE_EXPONENTS = 24,  /* and how much smaller their numbers are */
};

static uint32_t mixed(const struct inc_job_config *job, uint32_t chunk, uint32_t lane)
{
    uint32_t mixed = (chunk << 8 | lane) * 0x9E3779B1u + job->number * 0x85EBCA77u;
    return mixed ^ mixed >> 15;
}

void inc_integers(const struct inc_job_config *job, uint32_t chunk, uint32_t *numbers)
{
    for (uint32_t lane = 0; lane < INC_LANES; lane++)
        numbers[lane] = mixed(job, chunk, lane) * (job->member + 1u);
}

bool inc_are_integers(const struct inc_job_config *job, uint32_t chunk, uint64_t times,
                      const uint32_t *numbers)
{
    for (uint32_t lane = 0; lane < INC_LANES; lane++)
        if (numbers[lane] != mixed(job, chunk, lane) * (uint32_t)times)
            return false;
    return true;
}

static double power_of_two(int exponent)
{
    union { uint64_t bits; double number; } power = {(uint64_t)(ONE_OF_DOUBLES + exponent) << 52};
    return power.number;
}

static int exponent_of(double number)
{
    union { double number; uint64_t bits; } whole = {number};
    return (int)(whole.bits >> 52 & 0x7FF) - ONE_OF_DOUBLES;
}

/* The first member's. */
static double float_at(const struct inc_job_config *job, uint32_t chunk, uint32_t lane)
{
    uint32_t bits = mixed(job, chunk, lane), magnitude = mixed(job, ~chunk, 0);
    int significant = 1 << SIGNIFICANT | (int)(bits & ((1 << SIGNIFICANT) - 1));
    int exponent = (int)(magnitude % CHUNK_EXPONENTS) - CHUNK_EXPONENTS / 2 -
                   (int)(bits >> 8 & 0xFF) % LANE_EXPONENTS;
    return (bits >> 31 ? -significant : significant) * power_of_two(exponent - SIGNIFICANT);
}

static uint8_t largest(const struct inc_job_config *job, uint32_t chunk, double times)
{
    double most = 0;
    for (uint32_t lane = 0; lane < INC_LANES; lane++) {
        double number = float_at(job, chunk, lane), size = number < 0 ? -number : number;
        most = size > most ? size : most;
    }
    return (uint8_t)(exponent_of(most * times) + ONE);
}

uint8_t inc_exponent(const struct inc_job_config *job, uint32_t chunk)
{
    return largest(job, chunk, job->member + 1.0);
}

/* What the last bit of a sum is worth. */
static double unit(const struct inc_job_config *job, uint8_t exponent)
{
    int bits = BITS;
    for (uint32_t members = 1; members < job->members; members *= 2)
        bits--;
    return power_of_two(exponent - ONE + 1 - bits);
}

void inc_floats(const struct inc_job_config *job, uint32_t chunk, uint8_t exponent,
                uint32_t *numbers)
{
    double factor = (job->member + 1.0) / unit(job, exponent);
    for (uint32_t lane = 0; lane < INC_LANES; lane++) {
        double number = float_at(job, chunk, lane) * factor;
        numbers[lane] = (uint32_t)(int32_t)(number + (number < 0 ? -0.5 : 0.5));
    }
}

bool inc_are_floats(const struct inc_job_config *job, uint32_t chunk, uint8_t exponent,
                    const uint32_t *numbers)
{
    double members = job->members, worth = unit(job, exponent);
    if (exponent != largest(job, chunk, members))
        return false;
    for (uint32_t lane = 0; lane < INC_LANES; lane++) {
        double sum = float_at(job, chunk, lane) * members * (members + 1) / 2;
        double off = (double)(int32_t)numbers[lane] * worth - sum;
        if (off > members / 2 * worth || -off > members / 2 * worth)
            return false;
    }
    return true;
}
