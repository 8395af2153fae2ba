//! Finds races: records which thread touched which byte.

pub(crate) mod shadow;
pub(crate) mod stamp;
