/* Four sums of single precision, kept in memory since they may alias. */
#include "../kernels/driver.h"

typedef float v4 __attribute__((vector_size(16)));
static v4 sum, x[1024];

KERNEL void kernel(v4 *sum, v4 *x, int n) {
    for (int i = 0; i < n; i++) *sum += x[i];
}

static void run(void) {
    for (int i = 0; i < 1024; i++) x[i] = (v4){1, 2, 3, 4};
    kernel(&sum, x, N);
}
