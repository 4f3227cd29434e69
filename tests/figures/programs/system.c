// Programs whose time goes to the kernel or to waiting: `system KIND normal|control SIZE`.
// Labels: estimate_labels.csv, set "system". A control does the same work without the cause.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, AREA = 4 << 20 };

static int is_control;
static long size;

// Each page of new memory is written once; as control, of the same memory.
__attribute__((noinline)) static void k_faults(void) {
    char *kept = is_control ? mmap(0, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : 0;
    for (long round = 0; round < 300 * size; round++) {
        char *area = kept ? kept : mmap(0, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (long at = 0; at < AREA; at += PAGE) ((volatile char *)area)[at] = 1;
        if (!kept) munmap(area, AREA);
    }
}

// A byte a call, through the C library; as control, 4096 bytes a call.
__attribute__((noinline)) static void k_calls(void) {
    int pipes[2];
    char bytes[PAGE] = {0};
    if (pipe(pipes)) exit(1);
    long a_call = is_control ? PAGE : 1;
    for (long done = 0; done < 1000000 * size; done += a_call)
        if (write(pipes[1], bytes, a_call) != a_call || read(pipes[0], bytes, a_call) != a_call) exit(1);
}

// Two processes pass a byte to and fro: each waits for the other.
__attribute__((noinline)) static void k_pipes(void) {
    int there[2], back[2];
    char byte = 0;
    if (pipe(there) || pipe(back)) exit(1);
    long rounds = 60000 * size;
    pid_t other = fork();
    for (long n = 0; n < rounds; n++) {
        if (other) {
            if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) exit(1);
        } else if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1) exit(1);
    }
    if (!other) _exit(0);
    waitpid(other, 0, 0);
}

// Sleeps most of the time.
__attribute__((noinline)) static void k_sleeps(void) {
    volatile long sum = 0;
    for (long n = 0; n < 100 * size; n++) {
        for (long i = 0; i < 300000; i++) sum += i;
        usleep(9000);
    }
}

int main(int count, char **words) {
    if (count != 4) return 2;
    const char *kind = words[1];
    is_control = !strcmp(words[2], "control");
    size = atol(words[3]);
    if (!strcmp(kind, "faults")) k_faults();
    else if (!strcmp(kind, "calls")) k_calls();
    else if (!strcmp(kind, "pipes")) k_pipes();
    else if (!strcmp(kind, "sleeps")) k_sleeps();
    else return 2;
    return 0;
}
