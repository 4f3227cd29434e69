/* A row of a long multiplication: adds into the product. */
#include "driver.h"

static u32 a[1024], product[1100];

KERNEL u32 kernel(u32 *product, u32 *a, u32 x, int n) {
    u32 carry = 0;
    for (int i = 0; i < n; i++) {
        u64 t = (u64)a[i] * x + product[i] + carry;
        product[i] = (u32)t;
        carry = (u32)(t >> 32);
    }
    return carry;
}

static void run(void) {
    for (int i = 0; i < 1024; i++) a[i] = (u32)next();
    sink = kernel(product, a, 12345, N);
}
