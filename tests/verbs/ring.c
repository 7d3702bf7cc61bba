/* Ranks of MPI that send each other bytes round a ring, and look at what comes: "rank R right". */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 1 << 16, ROUNDS = 20 };

int main(int count, char **words)
{
    static unsigned char out[BYTES], in[BYTES], due[BYTES];
    int rank, size, wrong = 0, all;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int before = (rank + size - 1) % size;
    for (int round = 0; round < ROUNDS; round++) {
        memset(out, rank + round, BYTES);
        memset(due, before + round, BYTES);
        MPI_Sendrecv(out, BYTES, MPI_BYTE, (rank + 1) % size, 0, in, BYTES, MPI_BYTE, before, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong += memcmp(in, due, BYTES) != 0;
    }
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (!all)
        printf("rank %d right\n", rank);
    MPI_Finalize();
    return all;
}
