/* Adds two numbers of many words, the carry by comparison. */
#include "driver.h"

static u64 a[1024], b[1024];

KERNEL u64 kernel(u64 *a, u64 *b, int n) {
    u64 carry = 0;
    for (int i = 0; i < n; i++) {
        u64 sum = a[i] + carry;
        carry = sum < carry;
        a[i] = sum + b[i];
        carry += a[i] < sum;
    }
    return carry;
}

static void run(void) {
    for (int i = 0; i < 1024; i++) a[i] = next(), b[i] = next();
    sink = kernel(a, b, N);
}
