//! The op tables of the family. An op stands in one row of one of these files, and nowhere else.

pub mod binary;
pub mod bitwise;
pub mod channel;
pub mod comparison;
pub mod gated;
pub mod generator;
pub mod random;
pub mod select;
pub mod ternary;
pub mod unary;
