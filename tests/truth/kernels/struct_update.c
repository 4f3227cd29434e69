/* Particles: position += velocity, velocity *= drag. */
#include "driver.h"

struct particle { double x, y, vx, vy; };
static struct particle p[700];

KERNEL void kernel(struct particle *p, double drag, int n) {
    for (int i = 0; i < n; i++) {
        p[i].x += p[i].vx;
        p[i].y += p[i].vy;
        p[i].vx *= drag;
        p[i].vy *= drag;
    }
}

static void run(void) {
    kernel(p, 0.9, N);
}
