//! The kernels of the tables of random ops and generators, listed once for the device, the host and the build script.

/// Calls a macro, its path in parentheses, once for each kernel that a random op has in an element type:
/// `visitor! { kind mask strategy, args }`, where `kind` is `random_mask` and `mask` is `true` for those that also
/// write the mask.
#[macro_export]
macro_rules! random_strategies {
    (($($visitor:tt)*) $args:tt) => {
        $($visitor)*! { random false direct, $args }
        $($visitor)*! { random false explicit_parallel, $args }
        $($visitor)*! { random false register_copy, $args }
        $($visitor)*! { random_mask true direct, $args }
        $($visitor)*! { random_mask true explicit_parallel, $args }
        $($visitor)*! { random_mask true register_copy, $args }
    };
}

/// The visitor that lists the kernels of a table of random ops: a function `symbols`.
#[macro_export]
macro_rules! random_symbols {
    ($($name:ident: $op:ident [$($set:ident)*];)*) => {
        /// The symbol of every kernel of the table.
        #[must_use]
        pub fn symbols() -> Vec<&'static str> {
            let mut symbols = Vec::new();
            $( $crate::for_types! { [$($set)*] ($crate::__random_symbols) (symbols $name) } )*
            symbols
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __random_symbols {
    ($type:ident, ($symbols:ident $name:ident)) => {
        $crate::random_strategies! { ($crate::__random_symbol) ($symbols $name $type) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __random_symbol {
    ($kind:ident $mask:literal $strategy:ident, ($symbols:ident $name:ident $type:ident)) => {
        $symbols.push($crate::symbol!($kind, $name, $type, $strategy));
    };
}

/// The visitor that lists the kernels of a table of generators: a function `symbols`.
#[macro_export]
macro_rules! generator_symbols {
    ($($name:ident: $op:ident [$($set:ident)*];)*) => {
        /// The symbol of every kernel of the table.
        #[must_use]
        pub fn symbols() -> Vec<&'static str> {
            let mut symbols = Vec::new();
            $( $crate::for_types! { [$($set)*] ($crate::__generator_symbols) (symbols $name) } )*
            symbols
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __generator_symbols {
    ($type:ident, ($symbols:ident $name:ident)) => {
        $symbols.push($crate::symbol!(generator, $name, $type, direct));
        $symbols.push($crate::symbol!(generator, $name, $type, register_copy));
    };
}
