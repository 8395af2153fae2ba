//! A macro that the code made from op tables uses.

/// A formula as text.
#[doc(hidden)]
#[macro_export]
macro_rules! __text {
    ($formula:expr) => {
        stringify!($formula)
    };
}
