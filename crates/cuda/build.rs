//! Compiles native/src.

fn main() {
    tandem_cuda_build::Library::new("tandem_cuda").build();
}
