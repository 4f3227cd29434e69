/* A[i] = f(A[i - D], B[i]): a recurrence of distance D through memory, of type T. */
#include "driver.h"

static T a[1024], b[1024];

KERNEL void kernel(T *a, T *b, int n) {
    for (int i = D; i < n; i++) a[i] = a[i - D] * (T)3 + b[i];
}

static void run(void) {
    for (int i = 0; i < 1024; i++) b[i] = (T)(next() & 7);
    kernel(a, b, N);
}
