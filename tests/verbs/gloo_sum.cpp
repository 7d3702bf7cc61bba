/* Two ranks that add up numbers by gloo's ibverbs: "rank R right".
 *
 *   gloo_sum RANK FOLDER     where they meet
 */
#include <gloo/allreduce_ring.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

int main(int, char **words)
{
    const int rank = std::atoi(words[1]), size = 2, count = 50000, differ = 7;
    auto device = gloo::transport::ibverbs::CreateDevice({"closlab0", 1, 0});
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    gloo::rendezvous::FileStore store(words[2]);
    context->connectFullMesh(store, device);
    std::vector<float> values(count);
    for (int i = 0; i < count; i++)
        values[i] = static_cast<float>(rank + i % differ);
    gloo::AllreduceRing<float> sum(context, {values.data()}, count);
    sum.run();
    /* It does not wait for its last word to be acknowledged, and its end insists on that. */
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    for (int i = 0; i < count; i++)
        if (values[i] != static_cast<float>(1 + 2 * (i % differ)))
            return 1;
    std::printf("rank %d right\n", rank);
}
