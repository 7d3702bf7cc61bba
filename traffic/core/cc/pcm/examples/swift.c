/* Swift as an algorithm for PCM: to the byte what transport.cc=swift does (core/cc/swift.c has its
 * source and its reasons). The window is kept with its fraction; what is asked for is whole bytes.
 */
#include "pcmh.h"

#include "swift.h"

/* Newton's, as there. */
static PCM_FORCE_INLINE pcm_float root(pcm_float x)
{
    pcm_float r = x > 1 ? x : 1;
    for (int i = 0; i < 24; i++)
        r = (r + x / r) / 2;
    return r;
}

static PCM_FORCE_INLINE pcm_float limited(pcm_float window)
{
    window = window > LARGEST ? LARGEST : window;
    return window < PACKET ? PACKET : window;
}

/* The delay beyond an empty fabric's that is aimed at. */
static PCM_FORCE_INLINE pcm_float target(pcm_float window)
{
    pcm_float base = QUEUE_BASE * BASE_NS, range = RANGE * base;
    pcm_float alpha = range / (1 / root(MIN_SCALED) - 1 / root(MAX_SCALED));
    pcm_float scaled = alpha / root(window / PACKET) - alpha / root(MAX_SCALED);
    scaled = scaled < 0 ? 0 : scaled > range ? range : scaled;
    return base + HOPS * base / HOP_SHARE + scaled;
}

static PCM_FORCE_INLINE pcm_float decreased(ALGO_CTX_ARGS, pcm_float window, pcm_float factor)
{
    pcm_uint now = get_signal(TIME) / PS;
    if (now - get_var(DECREASED_AT) <= get_var(ROUND_TRIP))
        return window;
    set_var(DECREASED_AT, now);
    return limited(window * (factor < 1 - MAX_DECREASE ? 1 - MAX_DECREASE : factor));
}

int algorithm_main()
{
    pcm_float window = get_var_float(WINDOW);
    if (get_signal(CUT) || get_signal(LOST)) {
        window = decreased(ALGO_CTX_PASS, window, 0);
    } else {
        pcm_float aim = target(window), found;
        if (get_signal(RTT))
            set_var(ROUND_TRIP, get_signal(RTT) / PS > BASE_NS ? get_signal(RTT) / PS : BASE_NS);
        found = (pcm_float)(get_var(ROUND_TRIP) - BASE_NS);
        if (found < aim)
            window = limited(window + ADDITIVE * PACKET * (pcm_float)get_signal(ARRIVED) / window);
        else
            window = decreased(ALGO_CTX_PASS, window, 1 - BETA * (found - aim) / (found + BASE_NS));
    }
    set_var_float(WINDOW, window);
    set_control(CWND, window);
    return PCM_SUCCESS;
}
