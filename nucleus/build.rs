//! Passes the link script; the flags of code model and relocation come from `./x`.
fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:rustc-link-arg=-T{folder}/link.ld");
    println!("cargo:rerun-if-changed=link.ld");
}
