/* A pass of bubble sort in which each pair is swapped. */
#include "driver.h"

static int a[1024];

KERNEL void kernel(int *a, int n) {
    for (int i = 1; i < n; i++)
        if (a[i - 1] > a[i]) {
            int x = a[i];
            a[i] = a[i - 1];
            a[i - 1] = x;
        }
}

static void run(void) {
    for (int i = 0; i < 1024; i++) a[i] = 2000 - i;
    kernel(a, N);
}
