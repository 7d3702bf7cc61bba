/* libcrypto by its published API, of which versions 1.1 and 3 have all that is used here. */
#include "aead.h"

#include <dlfcn.h>
#include <stdlib.h>

struct aead; /* an EVP_CIPHER_CTX */

enum { SET_TAG = 0x11, GET_TAG = 0x10 }; /* EVP_CTRL_AEAD_*_TAG */

struct aead_library {
    void *handle;
    struct aead *(*context)(void);
    void (*free_context)(struct aead *context);
    const void *(*gcm)(void);
    int (*begin)(struct aead *context, const void *cipher, void *engine, const uint8_t *key,
                 const uint8_t *iv, int encrypts);
    int (*update)(struct aead *context, uint8_t *to, int *bytes, const uint8_t *from, int length);
    int (*end)(struct aead *context, uint8_t *to, int *bytes);
    int (*control)(struct aead *context, int type, int argument, void *pointer);
    const void *(*cbc)(void);
    void *(*mac)(void);
    void (*free_mac)(void *mac);
    int (*mac_begin)(void *mac, const void *key, size_t bytes, const void *cipher, void *engine);
    int (*mac_update)(void *mac, const void *data, size_t bytes);
    int (*mac_end)(void *mac, uint8_t *to, size_t *bytes);
};

static bool find(void *handle, const char *name, void *function)
{
    void *found = dlsym(handle, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool find_all(struct aead_library *library, void *handle)
{
    return find(handle, "EVP_CIPHER_CTX_new", &library->context) &&
           find(handle, "EVP_CIPHER_CTX_free", &library->free_context) &&
           find(handle, "EVP_aes_256_gcm", &library->gcm) &&
           find(handle, "EVP_CipherInit_ex", &library->begin) &&
           find(handle, "EVP_CipherUpdate", &library->update) &&
           find(handle, "EVP_CipherFinal_ex", &library->end) &&
           find(handle, "EVP_CIPHER_CTX_ctrl", &library->control) &&
           find(handle, "EVP_aes_256_cbc", &library->cbc) &&
           find(handle, "CMAC_CTX_new", &library->mac) &&
           find(handle, "CMAC_CTX_free", &library->free_mac) &&
           find(handle, "CMAC_Init", &library->mac_begin) &&
           find(handle, "CMAC_Update", &library->mac_update) &&
           find(handle, "CMAC_Final", &library->mac_end);
}

static bool load(struct aead_library *library, const char *name)
{
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return false;
    library->handle = handle;
    if (find_all(library, handle))
        return true;
    dlclose(handle);
    return false;
}

struct aead_library *aead_load(void)
{
    struct aead_library *library = calloc(1, sizeof *library);
    if (library && (load(library, "libcrypto.so.3") || load(library, "libcrypto.so.1.1") ||
                    load(library, "libcrypto.so")))
        return library;
    free(library);
    return NULL;
}

void aead_unload(struct aead_library *library)
{
    if (library)
        dlclose(library->handle);
    free(library);
}

struct aead *aead_new(const struct aead_library *library, const uint8_t key[AEAD_KEY], bool seals)
{
    struct aead *aead = library->context();
    if (aead && !library->begin(aead, library->gcm(), NULL, key, NULL, seals)) {
        library->free_context(aead);
        return NULL;
    }
    return aead;
}

void aead_free(const struct aead_library *library, struct aead *aead)
{
    if (aead)
        library->free_context(aead);
}

bool aead_seal(const struct aead_library *library, struct aead *aead, const uint8_t iv[AEAD_IV],
               const uint8_t *said, uint32_t said_bytes, uint8_t *text, uint32_t bytes)
{
    int n;
    return library->begin(aead, NULL, NULL, NULL, iv, 1) &&
           library->update(aead, NULL, &n, said, (int)said_bytes) &&
           library->update(aead, text, &n, text, (int)bytes) &&
           library->end(aead, text + bytes, &n) &&
           library->control(aead, GET_TAG, AEAD_TAG, text + bytes);
}

bool aead_open(const struct aead_library *library, struct aead *aead, const uint8_t iv[AEAD_IV],
               const uint8_t *said, uint32_t said_bytes, const uint8_t *from, uint8_t *to,
               uint32_t bytes, const uint8_t *tag)
{
    int n;
    uint8_t expected[AEAD_TAG];
    if (!library->begin(aead, NULL, NULL, NULL, iv, 0) ||
        !library->update(aead, NULL, &n, said, (int)said_bytes) ||
        !library->update(aead, to, &n, from, (int)bytes))
        return false;
    if (!tag)
        return true;
    memcpy(expected, tag, sizeof expected);
    return library->control(aead, SET_TAG, AEAD_TAG, expected) &&
           library->end(aead, to + bytes, &n) > 0;
}

bool aead_cmac(const struct aead_library *library, const uint8_t key[AEAD_KEY], const uint8_t *text,
               uint32_t bytes, uint8_t mac[CMAC_BYTES])
{
    void *context = library->mac();
    size_t n;
    bool done = context && library->mac_begin(context, key, AEAD_KEY, library->cbc(), NULL) &&
                library->mac_update(context, text, bytes) && library->mac_end(context, mac, &n);
    if (context)
        library->free_mac(context);
    return done;
}
