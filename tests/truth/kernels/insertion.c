/* The inner loop of an insertion sort: makes room. */
#include "driver.h"

static int a[1024];

KERNEL void kernel(int *a, int n) {
    for (int i = n - 4; i < n; i++) {
        int x = a[i], j = i;
        for (; j > 0 && a[j - 1] > x; j--) a[j] = a[j - 1];
        a[j] = x;
    }
}

static void run(void) {
    for (int i = 0; i < 1024; i++) a[i] = 1024 - i / 2 * 2;
    for (int i = 0; i < N - 4; i++) a[i] = 2000 + i;
    kernel(a, N);
}
