//! The ops on candle's tensors, on the CPU: against pointwise's own tensors, candle's functions, finite differences.

mod against_candle;
mod candle_functions;
mod errors;
mod gradients;
mod layouts;
mod mixed;
mod rope;
mod support;
