/* Exchanges two arrays. */
#include "driver.h"

static u64 a[1024], b[1024];

KERNEL void kernel(u64 *a, u64 *b, int n) {
    for (int i = 0; i < n; i++) {
        u64 x = a[i];
        a[i] = b[i];
        b[i] = x;
    }
}

static void run(void) {
    kernel(a, b, N);
}
