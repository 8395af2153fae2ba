fn main() {
    pointwise_build::ops("src/ops.rs").cfg("cubes").build();
}
