/* Fibonacci numbers in local variables: meant for -O0, where each lives in the stack. */
#include "../kernels/driver.h"

KERNEL u64 kernel(int n) {
    u64 a = 0, b = 1;
    for (int i = 0; i < n; i++) {
        u64 t = a + b;
        a = b;
        b = t;
    }
    return a;
}

static void run(void) { sink = kernel(N); }
