/* Where all that switches, hosts and nets consist of lies.
 *
 * Usually in the C library's heap. Who opens the arena has it there instead, from then on and for good:
 * memory at an address of his choice, which can be kept as it is in a file, and be there again in
 * another process, pointers and all.
 *
 *     struct arena | block | block | ... | used: zeros up to what is mapped
 *
 * A block is as large as its class says, four classes for each power of two; what is given back is
 * taken again by who wants one of the same class. Nothing is ever returned to the kernel.
 *
 * C that includes this takes and gives back there, by the C library's names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Open it: false, and errno tells, if it is open, or there can be none. */
bool arena_open(uint64_t at);
bool arena_is_open(void);
bool arena_holds(const void *memory);

/* How far it reaches, from its address on; and what tells two apart in which other memory was taken, or
 * the same in another order: where it is equal every block is where it was. */
uint64_t arena_used(void);
uint64_t arena_trace(void);

/* Have it reach so far, for who writes into it what it once held. */
bool arena_reach(uint64_t bytes);

/* As malloc, calloc, realloc, free and posix_memalign. */
void *arena_take(size_t size);
void *arena_zeros(size_t n, size_t size);
void *arena_resize(void *old, size_t size);
void arena_give(void *memory);
int arena_take_aligned(void **memory, size_t align, size_t size);

#define malloc(size) arena_take(size)
#define calloc(n, size) arena_zeros(n, size)
#define realloc(old, size) arena_resize(old, size)
#define free(memory) arena_give(memory)
#define posix_memalign(memory, align, size) arena_take_aligned(memory, align, size)
