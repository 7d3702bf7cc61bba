/* Libraries for adapters of two makers, by which perftest, UCX and libfabric are linked: none of
 * theirs is here. */
#include <errno.h>
#include <stddef.h>

#define ABSENT(name) \
    void *name(void) \
    { \
        errno = EOPNOTSUPP; \
        return NULL; \
    }
#define ABSENT_BY_CODE(name) \
    int name(void) { return errno = EOPNOTSUPP; }

#ifdef OF_EFA
ABSENT(efadv_cq_from_ibv_cq_ex)
ABSENT(efadv_create_cq)
ABSENT(efadv_create_qp_ex)
ABSENT_BY_CODE(efadv_query_ah)
ABSENT_BY_CODE(efadv_query_device)
#else
ABSENT(mlx5dv_create_cq)
ABSENT(mlx5dv_create_mkey)
ABSENT(mlx5dv_create_qp)
ABSENT(mlx5dv_crypto_login)
ABSENT(mlx5dv_dek_create)
ABSENT(mlx5dv_dek_destroy)
ABSENT(mlx5dv_destroy_mkey)
ABSENT(mlx5dv_devx_alloc_uar)
ABSENT(mlx5dv_devx_create_event_channel)
ABSENT(mlx5dv_devx_destroy_event_channel)
ABSENT(mlx5dv_devx_free_uar)
ABSENT(mlx5dv_devx_obj_create)
ABSENT(mlx5dv_devx_umem_reg)
ABSENT(mlx5dv_open_device)
ABSENT(mlx5dv_qp_ex_from_ibv_qp_ex)
ABSENT_BY_CODE(mlx5dv_devx_general_cmd)
ABSENT_BY_CODE(mlx5dv_devx_get_event)
ABSENT_BY_CODE(mlx5dv_devx_obj_destroy)
ABSENT_BY_CODE(mlx5dv_devx_obj_modify)
ABSENT_BY_CODE(mlx5dv_devx_obj_query)
ABSENT_BY_CODE(mlx5dv_devx_qp_modify)
ABSENT_BY_CODE(mlx5dv_devx_qp_query)
ABSENT_BY_CODE(mlx5dv_devx_subscribe_devx_event)
ABSENT_BY_CODE(mlx5dv_devx_umem_dereg)
ABSENT_BY_CODE(mlx5dv_init_obj)
ABSENT_BY_CODE(mlx5dv_query_device)
_Bool mlx5dv_is_supported(void *device) { return (void)device, 0; }
#endif
