/* Path halving in a union-find forest. */
/* class: data-dependent */
#include "driver.h"

static u32 parent[1024];

KERNEL u32 kernel(u32 *parent, u32 x) {
    while (parent[x] != x) {
        parent[x] = parent[parent[x]];
        x = parent[x];
    }
    return x;
}

static void run(void) {
    for (int i = 1; i < 1024; i++) parent[i] = i - 1;
    sink = kernel(parent, 1000 + 0 * N);
}
