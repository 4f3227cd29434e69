/* A linear congruential generator in a register. */
#include "../kernels/driver.h"

static u32 out[1024];

KERNEL void kernel(u32 *out, u32 seed, int n) {
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = seed;
    }
}

static void run(void) { kernel(out, (u32)next(), N); }
