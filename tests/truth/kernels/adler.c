/* The Adler-32 checksum, both sums in memory. */
#include "driver.h"

static u8 text[1024];
static volatile u32 sums[2];

KERNEL void kernel(volatile u32 *sums, u8 *text, int n) {
    for (int i = 0; i < n; i++) {
        sums[0] += text[i];
        sums[1] += sums[0];
    }
}

static void run(void) {
    for (int i = 0; i < 1024; i++) text[i] = (u8)next();
    kernel(sums, text, N);
}
