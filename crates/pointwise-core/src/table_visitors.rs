//! What visitors of a table share: its element types, the kernels of an op, and the list of their symbols.

/// Calls a macro, its path in parentheses, once for each element type of a table's column: `visitor! { type, args }`.
/// The sets are `floats` (f32 f16 bf16 f8e4m3 f8e5m2) and `ints` (i8 i16 i32 i64 u8); single types stand by their
/// names.
#[macro_export]
macro_rules! for_types {
    ([$($set:ident)*] $visitor:tt $args:tt) => {
        $($crate::for_types! { @$set $visitor $args })*
    };
    (@floats $v:tt $args:tt) => {
        $crate::for_types! { @each $v $args f32 f16 bf16 f8e4m3 f8e5m2 }
    };
    (@ints $v:tt $args:tt) => {
        $crate::for_types! { @each $v $args i8 i16 i32 i64 u8 }
    };
    (@each $v:tt $args:tt $($t:ident)*) => {
        $($crate::for_types! { @$t $v $args })*
    };
    (@f32 $v:tt $args:tt) => { $crate::for_types! { @call f32 $v $args } };
    (@f16 $v:tt $args:tt) => { $crate::for_types! { @call f16 $v $args } };
    (@bf16 $v:tt $args:tt) => { $crate::for_types! { @call bf16 $v $args } };
    (@f8e4m3 $v:tt $args:tt) => { $crate::for_types! { @call f8e4m3 $v $args } };
    (@f8e5m2 $v:tt $args:tt) => { $crate::for_types! { @call f8e5m2 $v $args } };
    (@i8 $v:tt $args:tt) => { $crate::for_types! { @call i8 $v $args } };
    (@i16 $v:tt $args:tt) => { $crate::for_types! { @call i16 $v $args } };
    (@i32 $v:tt $args:tt) => { $crate::for_types! { @call i32 $v $args } };
    (@i64 $v:tt $args:tt) => { $crate::for_types! { @call i64 $v $args } };
    (@u8 $v:tt $args:tt) => { $crate::for_types! { @call u8 $v $args } };
    (@bool $v:tt $args:tt) => { $crate::for_types! { @call bool $v $args } };
    (@call $t:ident ($($visitor:tt)*) $args:tt) => {
        $($visitor)*! { $t, $args }
    };
    (@$word:ident $v:tt $args:tt) => {};
}

/// Calls a macro, its path in parentheses, once for each kernel that a unary op of one element type and result (`T` or
/// `bool`) has: `visitor! { strategy, args }`. The only place where the strategies are listed for kernels.
#[macro_export]
macro_rules! unary_strategies {
    (f8e4m3 T $visitor:tt $args:tt) => {
        $crate::unary_strategies! { @each $visitor $args strided register_copy table }
    };
    (f8e5m2 T $visitor:tt $args:tt) => {
        $crate::unary_strategies! { @each $visitor $args strided register_copy table }
    };
    (@each $visitor:tt $args:tt $($strategy:ident)*) => {
        $($crate::unary_strategies! { @call $visitor $strategy $args })*
    };
    (@call ($($visitor:tt)*) $strategy:ident $args:tt) => {
        $($visitor)*! { $strategy, $args }
    };
    ($type:ident $out:ident $visitor:tt $args:tt) => {
        $crate::unary_strategies! { @each $visitor $args strided register_copy }
    };
}

/// The visitor that lists the kernels of a table of unary ops: a function `symbols`, for build scripts to check that
/// all were made.
#[macro_export]
macro_rules! unary_symbols {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident $({ $($p:ident = $default:expr),* })? ($x:ident: $bound:ident) -> $out:ident,
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => {
        /// The symbol of every kernel of the table.
        #[must_use]
        pub fn symbols() -> Vec<&'static str> {
            let mut symbols = Vec::new();
            $( $crate::for_types! { [$($set)*] ($crate::__unary_symbols) (symbols $name $out) } )*
            symbols
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __unary_symbols {
    ($type:ident, ($symbols:ident $name:ident $out:ident)) => {
        $crate::unary_strategies! { $type $out ($crate::__unary_symbol) ($symbols $name $type) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __unary_symbol {
    ($strategy:ident, ($symbols:ident $name:ident $type:ident)) => {
        $symbols.push($crate::symbol!(unary, $name, $type, $strategy));
    };
}

/// Calls a macro, its path in parentheses, once for each kernel that an op of several operands has in one element type:
/// `visitor! { variant, args }`. The only place where these are listed for kernels.
#[macro_export]
macro_rules! map_variants {
    (($($visitor:tt)*) $args:tt) => {
        $($visitor)*! { flat, $args }
        $($visitor)*! { rows, $args }
        $($visitor)*! { strided, $args }
    };
}

/// The visitors that list the kernels of a table of ops of several operands, as
/// [`unary_symbols`](crate::unary_symbols).
#[macro_export]
macro_rules! binary_symbols {
    ($($rows:tt)*) => {
        $crate::__map_symbols! { binary $($rows)* }
    };
}

/// See [`binary_symbols`](crate::binary_symbols).
#[macro_export]
macro_rules! ternary_symbols {
    ($($rows:tt)*) => {
        $crate::__map_symbols! { ternary $($rows)* }
    };
}

/// See [`binary_symbols`](crate::binary_symbols); the element types stand for all of their width.
#[macro_export]
macro_rules! select_symbols {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident ($($x:ident),*: $bound:ident) -> $out:ident,
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => {
        $crate::__map_symbols! { select $(
            $name: $op ($($x),*: $bound) -> $out, [i8 i16 i32 i64], $accuracy => $formula;
        )* }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __map_symbols {
    ($kind:ident $(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident $({ $($p:ident = $default:expr),* })? ($($x:ident),*: $bound:ident) -> $out:ident,
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => {
        /// The symbol of every kernel of the table.
        #[must_use]
        pub fn symbols() -> Vec<&'static str> {
            let mut symbols = Vec::new();
            $( $crate::for_types! { [$($set)*] ($crate::__map_symbols_of) (symbols $kind $name) } )*
            symbols
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __map_symbols_of {
    ($type:ident, ($symbols:ident $kind:ident $name:ident)) => {
        $crate::map_variants! { ($crate::__map_symbol) ($symbols $kind $name $type) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __map_symbol {
    ($variant:ident, ($symbols:ident $kind:ident $name:ident $type:ident)) => {
        $symbols.push($crate::symbol!($kind, $name, $type, $variant));
    };
}

/// The symbol of a kernel entry. The only place where one is formed: the kernels export it, the host asks for it.
#[macro_export]
macro_rules! symbol {
    ($kind:ident, $op:ident, $type:ident, $strategy:ident) => {
        concat!(stringify!($kind), "_", stringify!($op), "_", stringify!($type), "_", stringify!($strategy))
    };
}
