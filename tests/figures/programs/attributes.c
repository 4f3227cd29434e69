/* LD_PRELOAD: logs the attributes of each perf_event_open(2) of a hardware event to the file ATTRIBUTES, in hex, a line each,
   and opens a clock without the fields that only hardware has, so that a tool goes on where there is no PMU. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static const unsigned long HARDWARE_ONLY = PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT_TYPE;

static int is_hardware(const struct perf_event_attr *attr) {
    return attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_RAW || attr->type == 9 /* ibs_op of attributes.py */;
}

static void logged(const struct perf_event_attr *attr) {
    const char *path = getenv("ATTRIBUTES");
    FILE *file = path ? fopen(path, "a") : 0;
    if (!file) return;
    const unsigned char *bytes = (const unsigned char *)attr;
    for (unsigned i = 0; i < attr->size; i++) fprintf(file, "%02x", bytes[i]);
    fputc('\n', file);
    fclose(file);
}

long syscall(long number, ...) {
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    const struct perf_event_attr *asked = (const struct perf_event_attr *)a[0];
    if (number != SYS_perf_event_open || !is_hardware(asked)) return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    logged(asked);
    struct perf_event_attr clock;
    memset(&clock, 0, sizeof clock);
    memcpy(&clock, asked, asked->size < sizeof clock ? asked->size : sizeof clock);
    clock.size = sizeof clock;
    clock.type = PERF_TYPE_SOFTWARE;
    clock.config = PERF_COUNT_SW_TASK_CLOCK;
    clock.config1 = clock.config2 = clock.branch_sample_type = 0;
    clock.precise_ip = 0;
    clock.sample_type &= ~HARDWARE_ONLY;
    if (!clock.freq && clock.sample_period) clock.sample_period = 1000000;
    return real(number, &clock, a[1], a[2], a[3], a[4], a[5]);
}
