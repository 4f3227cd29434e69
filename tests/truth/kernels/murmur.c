/* The body of MurmurHash3 of 32 bits, the state in memory. */
#include "driver.h"

static u32 key[1024], hash;

KERNEL void kernel(volatile u32 *hash, u32 *key, int n) {
    for (int i = 0; i < n; i++) {
        u32 k = key[i] * 0xcc9e2d51u;
        k = (k << 15 | k >> 17) * 0x1b873593u;
        u32 h = *hash ^ k;
        *hash = (h << 13 | h >> 19) * 5 + 0xe6546b64u;
    }
}

static void run(void) {
    kernel(&hash, key, N);
}
