//! The kernels that a build script left.

/// Includes the kernels that the build script compiled, as a static `KERNELS` for
/// [`host_generator!`](crate::host_generator) and for [`Device::best_for`](crate::Device::best_for).
#[macro_export]
macro_rules! include_kernels {
    () => {
        /// The kernels embedded in this program: none where it was built without a compiler for GPU code.
        #[allow(unreachable_pub)]
        pub static KERNELS: $crate::embed::Kernels = {
            use $crate::embed::*;
            include!(concat!(env!("OUT_DIR"), "/pointwise_kernels.rs"))
        };
    };
}
