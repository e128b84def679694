//! Compiles native/src. A crate of your own with kernels over the device API has a build script like this one.

fn main() {
    let headers = |name: &str| {
        std::env::var(name).expect("the build scripts of tandem-cuda and tandem-fabric give their headers")
    };
    let (cuda, fabric) = (headers("DEP_TANDEM_CUDA_INCLUDE"), headers("DEP_TANDEM_FABRIC_INCLUDE"));
    tandem_cuda_build::Library::new("tandem_fabric_examples")
        .include(cuda)
        .include(fabric)
        // In debug builds kernels find accesses past the end.
        .define_in_debug("TANDEM_FABRIC_CHECKS")
        .quiet()
        .build();
}
