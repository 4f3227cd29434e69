//! Sets linker options for the program.

fn main() {
    println!("cargo::rerun-if-changed=ui/build.rs");
    // The standard library's debug information is most of what is not code.
    println!("cargo::rustc-link-arg-bins=-Wl,--compress-debug-sections=zlib");
}
