/* What an algorithm for PCM calls: everything that it reads and writes are words of its snapshot,
 *
 *   which signals triggered | which it set | signals | controls | variables
 *
 * whose places the header that is made of its YAML file has.
 */
#pragma once

#include "pcm.h"

typedef pcm_uint *pcm_handler_datapath_snapshot;

#define ALGO_CTX_ARGS pcm_handler_datapath_snapshot snapshot
#define ALGO_CTX_PASS snapshot
#define algorithm_main() __algorithm_main(ALGO_CTX_ARGS)

static PCM_FORCE_INLINE pcm_float pcm_as_float(pcm_uint word)
{
    pcm_float value;
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
}

static PCM_FORCE_INLINE pcm_uint pcm_of_float(pcm_float value)
{
    pcm_uint word;
    __builtin_memcpy(&word, &value, sizeof word);
    return word;
}

/* Signals are named by a bit of the mask. */
#define PCM_SIGNAL(bit) snapshot[SIGNAL_OFFSET + (size_t)__builtin_ctz(bit)]
#define PCM_WORD(place) snapshot[VAR_OFFSET + (size_t)(place)]

#define get_signal(bit) (+PCM_SIGNAL(bit))
#define set_signal(bit, value)                                                                       \
    (PCM_SIGNAL(bit) = (pcm_uint)(value), (void)(snapshot[SET_SIGNAL_MASK_OFFSET] |= (pcm_uint)(bit)))
#define update_signal(bit, value)                                                                    \
    (PCM_SIGNAL(bit) += (pcm_uint)(value), (void)(snapshot[SET_SIGNAL_MASK_OFFSET] |= (pcm_uint)(bit)))
#define get_signal_trigger_mask() (+snapshot[MASK_OFFSET])

#define get_control(place) (+snapshot[CONTROL_OFFSET + (size_t)(place)])
#define set_control(place, value) ((void)(snapshot[CONTROL_OFFSET + (size_t)(place)] = (pcm_uint)(value)))

#define get_var(place) (+PCM_WORD(place))
#define get_var_uint(place) (+PCM_WORD(place))
#define get_var_int(place) ((pcm_int)PCM_WORD(place))
#define get_var_float(place) pcm_as_float(PCM_WORD(place))
#define set_var(place, value) ((void)(PCM_WORD(place) = (pcm_uint)(value)))
#define set_var_uint(place, value) ((void)(PCM_WORD(place) = (pcm_uint)(value)))
#define set_var_int(place, value) ((void)(PCM_WORD(place) = (pcm_uint)(pcm_int)(value)))
#define set_var_float(place, value) ((void)(PCM_WORD(place) = pcm_of_float(value)))
#define get_arr_uint(array, at) (+PCM_WORD((array) + (at)))
#define set_arr_uint(array, at, value) ((void)(PCM_WORD((array) + (at)) = (pcm_uint)(value)))
