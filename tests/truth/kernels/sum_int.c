/* The sum of an array of int. */
#include "driver.h"

static int a[1024];

KERNEL int kernel(int *a, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += a[i];
    return sum;
}

static void run(void) {
    sink = kernel(a, N);
}
