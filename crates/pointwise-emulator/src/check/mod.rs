//! What is known of who touched which byte, to find races.

pub(crate) mod shadow;
pub(crate) mod stamp;
