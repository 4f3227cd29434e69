/* Words of eight bytes stored at a stride of six: each overwrites a part of the one before. */
#include "driver.h"

static u8 a[8192];

KERNEL void kernel(volatile u8 *a, int n) {
    for (int i = 1; i < n; i++) {
        u64 x;
        x = *(volatile u64 __attribute__((aligned(1), may_alias)) *)(a + 6 * (i - 1));
        *(volatile u64 __attribute__((aligned(1), may_alias)) *)(a + 6 * i) = x + 1;
    }
}

static void run(void) {
    kernel(a, N);
}
