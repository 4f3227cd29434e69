/* More live values than there are registers. */
#include "driver.h"

static u64 a[1024], out[1];

KERNEL u64 kernel(u64 *a, int n) {
    u64 v0 = 1, v1 = 2, v2 = 3, v3 = 4, v4 = 5, v5 = 6, v6 = 7, v7 = 8, v8 = 9, v9 = 10, v10 = 11, v11 = 12, v12 = 13,
        v13 = 14, v14 = 15, v15 = 16, v16 = 17, v17 = 18, v18 = 19, v19 = 20;
    for (int i = 0; i < n; i++) {
        u64 x = a[i];
        v0 += x * v19; v1 ^= v0 >> 3; v2 += v1 * x; v3 ^= v2 >> 5; v4 += v3; v5 ^= v4 * x; v6 += v5; v7 ^= v6 >> 1;
        v8 += v7; v9 ^= v8 * x; v10 += v9; v11 ^= v10; v12 += v11; v13 ^= v12 * x; v14 += v13; v15 ^= v14;
        v16 += v15; v17 ^= v16 * x; v18 += v17; v19 ^= v18;
    }
    return v0 ^ v1 ^ v2 ^ v3 ^ v4 ^ v5 ^ v6 ^ v7 ^ v8 ^ v9 ^ v10 ^ v11 ^ v12 ^ v13 ^ v14 ^ v15 ^ v16 ^ v17 ^ v18 ^ v19;
}

static void run(void) {
    for (int i = 0; i < 1024; i++) a[i] = next();
    out[0] = kernel(a, N / 2);
}
