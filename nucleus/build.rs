//! Passes the link script of the ISA; the flags of code model and relocation come from `./x`.
fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let isa = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    println!("cargo:rustc-link-arg=-T{folder}/src/arch/{isa}/link.ld");
    println!("cargo:rerun-if-changed=src/arch/{isa}/link.ld");
}
