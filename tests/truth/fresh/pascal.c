/* The next row of Pascal's triangle, downwards in memory, in place. */
#include "../kernels/driver.h"

static u64 row[1024];

KERNEL void kernel(u64 *row, int n) {
    for (int i = 1; i < n; i++) row[i] += 3 * row[i - 1];
}

static void run(void) {
    for (int i = 0; i < 1024; i++) row[i] = next();
    kernel(row, N);
}
