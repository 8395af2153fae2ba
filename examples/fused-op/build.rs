fn main() {
    pointwise_build::Kernels::new("kernels").build();
}
