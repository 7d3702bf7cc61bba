/* Libraries for adapters of two makers, by which perftest is linked: none of theirs is here. */
#include <errno.h>
#include <stddef.h>

#define ABSENT(name) \
    void *name(void) \
    { \
        errno = EOPNOTSUPP; \
        return NULL; \
    }

#ifdef OF_EFA
ABSENT(efadv_create_qp_ex)
int efadv_query_device(void) { return EOPNOTSUPP; }
#else
ABSENT(mlx5dv_create_mkey)
ABSENT(mlx5dv_create_qp)
ABSENT(mlx5dv_crypto_login)
ABSENT(mlx5dv_dek_create)
ABSENT(mlx5dv_dek_destroy)
ABSENT(mlx5dv_destroy_mkey)
ABSENT(mlx5dv_devx_general_cmd)
ABSENT(mlx5dv_open_device)
ABSENT(mlx5dv_qp_ex_from_ibv_qp_ex)
_Bool mlx5dv_is_supported(void *device) { return (void)device, 0; }
int mlx5dv_query_device(void) { return EOPNOTSUPP; }
#endif
