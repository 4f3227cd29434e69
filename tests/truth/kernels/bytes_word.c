/* Bytes stored one by one, then read as a word. */
#include "driver.h"

static u8 a[16];

KERNEL u32 kernel(volatile u8 *a, u32 x, int n) {
    for (int i = 0; i < n; i++) {
        a[0] = (u8)x;
        a[1] = (u8)(x >> 8);
        a[2] = (u8)(x >> 16);
        a[3] = (u8)(x >> 24);
        x = *(volatile u32 __attribute__((may_alias)) *)a * 5 + 1;
    }
    return x;
}

static void run(void) {
    sink = kernel(a, 7, N);
}
