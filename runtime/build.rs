//! Does nothing: `links` in the manifest asks for a build script.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
