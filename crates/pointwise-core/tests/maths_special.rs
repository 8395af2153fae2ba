//! (tests of special values)
