/* AES-GCM and CMAC of OpenSSL's libcrypto, which is looked for when somebody asks for it: whoever does
 * not encrypt needs no such library.
 */
#pragma once

#include "units.h"

enum { AEAD_KEY = 32, AEAD_IV = 12, AEAD_TAG = 16, CMAC_BYTES = 16 };

struct aead_library;

/* NULL if it is not here, or too old: AEAD_CURE says what to do. Each is to be freed. */
struct aead_library *aead_load(void);
void aead_unload(struct aead_library *library);

#define AEAD_CURE \
    "transport.security needs OpenSSL's libcrypto (3, or 1.1), which is not here: apt-get install libssl3"

/* A key made ready, in one direction; NULL when memory is short. */
struct aead;
struct aead *aead_new(const struct aead_library *library, const uint8_t key[AEAD_KEY], bool seals);
void aead_free(const struct aead_library *library, struct aead *aead);

/* In place; the tag goes behind. */
bool aead_seal(const struct aead_library *library, struct aead *aead, const uint8_t iv[AEAD_IV],
               const uint8_t *said, uint32_t said_bytes, uint8_t *text, uint32_t bytes);
/* `tag` NULL: decrypt, whoever wrote it. False: it is not authentic. */
bool aead_open(const struct aead_library *library, struct aead *aead, const uint8_t iv[AEAD_IV],
               const uint8_t *said, uint32_t said_bytes, const uint8_t *from, uint8_t *to,
               uint32_t bytes, const uint8_t *tag);

/* Of AES with 256 bits. */
bool aead_cmac(const struct aead_library *library, const uint8_t key[AEAD_KEY], const uint8_t *text,
               uint32_t bytes, uint8_t mac[CMAC_BYTES]);
