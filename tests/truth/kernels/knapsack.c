/* A row of the unbounded knapsack: best[w] from best[w - 6]. */
#include "driver.h"

static int best[1024];

KERNEL void kernel(int *best, int weight, int value, int n) {
    for (int w = weight; w < n; w++) {
        int with = best[w - weight] + value;
        best[w] = with > best[w] ? with : best[w];
    }
}

static void run(void) {
    kernel(best, 6, 11, N);
}
