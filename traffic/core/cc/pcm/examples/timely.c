/* TIMELY as an algorithm for PCM: to the byte what transport.cc=timely does with the paper's rules
 * (core/cc/timely.c has its source and its reasons). With transport.pcm.ask_every the packets that
 * time a round trip are as far apart as its segments.
 */
#include "pcmh.h"

#include "timely.h"

static PCM_FORCE_INLINE pcm_float next_rate(ALGO_CTX_ARGS, pcm_float rate, pcm_float rtt)
{
    pcm_float gradient = get_var_float(DIFFERENCE) / BASE_NS;
    if (rtt < LOW * BASE_NS)
        return rate + STEP;
    if (rtt > HIGH * BASE_NS)
        return rate * (1 - BETA * (1 - HIGH * BASE_NS / rtt));
    if (gradient > 0) {
        set_var(ROUNDS, 0);
        return rate * (1 - BETA * gradient);
    }
    set_var(ROUNDS, get_var(ROUNDS) + 1);
    return rate + (get_var(ROUNDS) >= HYPER_ROUNDS ? HYPER : 1) * STEP;
}

int algorithm_main()
{
    pcm_float rate = get_var_float(EXACT_RATE), rtt = (pcm_float)(get_signal(RTT) / PS);
    pcm_float previous = get_var_float(PREVIOUS), difference = get_var_float(DIFFERENCE);
    if (previous > 0)
        set_var_float(DIFFERENCE, (1 - WEIGHT) * difference + WEIGHT * (rtt - previous));
    set_var_float(PREVIOUS, rtt);
    rate = next_rate(ALGO_CTX_PASS, rate, rtt);
    rate = rate < LINE / 100 ? LINE / 100 : rate > LINE ? LINE : rate;
    set_var_float(EXACT_RATE, rate);
    set_control(RATE, rate);
    return PCM_SUCCESS;
}
