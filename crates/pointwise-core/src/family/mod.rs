//! The op tables of the family. An op stands in one row of one of these files, and nowhere else.

pub mod backward;
pub mod binary;
pub mod bitwise;
pub mod channel;
pub mod channel_gradients;
pub mod comparison;
mod derived;
pub mod gated;
pub mod gated_gradients;
pub mod generator;
pub mod gradients;
pub mod powers;
pub mod random;
pub mod select;
pub mod select_gradients;
pub mod ternary;
pub mod unary;
