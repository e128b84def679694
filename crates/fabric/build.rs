//! Compiles native/src; in debug builds its kernels find accesses past the end.

fn main() {
    let cuda = std::env::var("DEP_TANDEM_CUDA_INCLUDE").expect("tandem-cuda's build script gives its headers");
    // Where there is no nvcc, tandem-cuda's build script has said so.
    tandem_cuda_build::Library::new("tandem_fabric")
        .include(cuda)
        .define_in_debug("TANDEM_FABRIC_CHECKS")
        .quiet()
        .build();
}
