/* Marks regions of a program, for `tdtool report --regions`. C and C++, gcc and clang.
 *
 *     tdtool_begin("physics");
 *     ...
 *     tdtool_end("physics");
 *
 *     { TDTOOL_REGION("frame");  ... }        ends with the block, on every way out
 *
 * A marker is a nop with a USDT note (.note.stapsdt, as SystemTap's sys/sdt.h writes it; provider tdtool,
 * probes begin and end, argument: the address of the name). Nothing else runs while nobody looks. Elsewhere
 * than on Linux for x86-64 it is nothing at all.
 *
 * Regions belong to the thread that marks them, and may nest; tdtool_end closes the innermost one with that
 * name. tdtool reads a name once for each address: the text there must not change (a string literal).
 */
#ifndef TDTOOL_H
#define TDTOOL_H

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)

/* Five bytes, so that a jump fits in its place. */
#define TDTOOL_MARKER_(probe, name)                                                   \
    __asm__ __volatile__(                                                             \
        "990: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"                                   \
        ".pushsection .note.stapsdt,\"?\",\"note\"\n"                                 \
        ".balign 4\n"                                                                 \
        ".4byte 992f-991f, 994f-993f, 3\n"                                            \
        "991: .asciz \"stapsdt\"\n"                                                   \
        "992: .balign 4\n"                                                            \
        "993: .8byte 990b, _.stapsdt.base, 0\n"                                       \
        ".asciz \"tdtool\"\n"                                                         \
        ".asciz \"" probe "\"\n"                                                      \
        ".asciz \"8@%0\"\n"                                                           \
        "994: .balign 4\n"                                                            \
        ".popsection\n"                                                               \
        ".ifndef _.stapsdt.base\n"                                                    \
        ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"       \
        ".weak _.stapsdt.base\n"                                                      \
        ".hidden _.stapsdt.base\n"                                                    \
        "_.stapsdt.base: .space 1\n"                                                  \
        ".size _.stapsdt.base, 1\n"                                                   \
        ".popsection\n"                                                               \
        ".endif\n" : : "r"(name) : "memory")

#else
#define TDTOOL_MARKER_(probe, name) ((void)(name))
#endif

/* A region of this thread begins. */
static __inline__ void tdtool_begin(const char *name) { TDTOOL_MARKER_("begin", name); }

/* The innermost open region of this thread with this name ends. */
static __inline__ void tdtool_end(const char *name) { TDTOOL_MARKER_("end", name); }

#define TDTOOL_JOIN_(a, b) a##b
#define TDTOOL_NAME_(line) TDTOOL_JOIN_(tdtool_region_, line)

#ifdef __cplusplus
namespace tdtool {
/* A region that ends with its scope. */
class region {
  public:
    explicit region(const char *name) : name_(name) { tdtool_begin(name_); }
    ~region() { tdtool_end(name_); }
    region(const region &) = delete;
    region &operator=(const region &) = delete;

  private:
    const char *name_;
};
}
#define TDTOOL_REGION(name) tdtool::region TDTOOL_NAME_(__LINE__)(name)
#elif defined(__GNUC__)
static __inline__ void tdtool_leave_(const char **name) { tdtool_end(*name); }
/* A region that ends with its block. */
#define TDTOOL_REGION(name)                                                           \
    __attribute__((cleanup(tdtool_leave_), unused)) const char *TDTOOL_NAME_(__LINE__) = \
        (tdtool_begin(name), (name))
#endif

#endif
