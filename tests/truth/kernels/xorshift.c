/* A generator of pseudo-random numbers with its state in memory. */
#include "driver.h"

static u64 state = 88172645463325252ul;

KERNEL void kernel(volatile u64 *state, int n) {
    for (int i = 0; i < n; i++) {
        u64 x = *state;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        *state = x;
    }
}

static void run(void) {
    kernel(&state, N);
}
