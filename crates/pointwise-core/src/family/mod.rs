//! The op tables of the family. An op stands in one row of one of these files, and nowhere else.

pub mod unary;
