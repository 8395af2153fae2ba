//! What the code that is made of tables of ops needs.

/// A formula as text.
#[doc(hidden)]
#[macro_export]
macro_rules! __text {
    ($formula:expr) => {
        stringify!($formula)
    };
}
