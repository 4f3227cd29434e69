/* The scan of a quicksort partition (Lomuto). */
/* class: data-dependent */
#include "driver.h"

static int a[1024];

KERNEL int kernel(int *a, int pivot, int n) {
    int low = 0;
    for (int i = 0; i < n; i++) {
        int x = a[i];
        a[i] = a[low];
        a[low] = x;
        low += x < pivot;
    }
    return low;
}

static void run(void) {
    for (int i = 0; i < 1024; i++) a[i] = (int)(next() & 1023);
    sink = kernel(a, 512, N);
}
