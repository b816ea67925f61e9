//! Has the linker put together what a call of kubelet's runs.

#![allow(clippy::print_stdout)] // that is how cargo is told

fn main() {
    println!("cargo:rerun-if-changed=src/order.ld");
    // Other builds are not measured, and link sooner without it.
    if std::env::var_os("PROFILE").is_some_and(|profile| profile == "release") {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/order.ld");
        println!("cargo:rustc-link-arg-bin=lvm=-T{script}");
    }
}
