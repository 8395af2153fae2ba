//! Who may make the definition of an op.

/// That the parts of a definition are of one row: loops and kernels take it for granted that elements are of the types
/// that the row lists. The macros that make definitions of tables say so; nobody else has one of these.
#[doc(hidden)]
#[derive(Debug)]
pub struct Made(());

impl Made {
    /// # Safety
    /// The loops and the kernels that the definition gives for an element type are those of its row for that type.
    pub const unsafe fn of_a_row() -> Made {
        Made(())
    }
}
