//! Integer arithmetic and operations on bits.
//!
//! Division by zero gives all ones for quotients and remainders, as on the hardware.

#[inline(always)]
pub(crate) fn shl(a: u32, n: u32) -> u32 {
    if n > 31 { 0 } else { a << (n & 31) }
}

#[inline(always)]
pub(crate) fn shr_u(a: u32, n: u32) -> u32 {
    if n > 31 { 0 } else { a >> (n & 31) }
}

#[inline(always)]
pub(crate) fn shr_s(a: u32, n: u32) -> u32 {
    ((a as i32) >> n.min(31)) as u32
}

#[inline(always)]
pub(crate) fn shl_long(a: u64, n: u32) -> u64 {
    if n > 63 { 0 } else { a << (n & 63) }
}

#[inline(always)]
pub(crate) fn shr_u_long(a: u64, n: u32) -> u64 {
    if n > 63 { 0 } else { a >> (n & 63) }
}

#[inline(always)]
pub(crate) fn shr_s_long(a: u64, n: u32) -> u64 {
    ((a as i64) >> n.min(63)) as u64
}

/// Sign-extends the low 16 bits.
#[inline(always)]
pub(crate) fn signed16(a: u32) -> u32 {
    i32::from(a as u16 as i16) as u32
}

/// Sign-extends the low 8 bits.
#[inline(always)]
pub(crate) fn signed8(a: u32) -> u32 {
    i32::from(a as u8 as i8) as u32
}

#[inline(always)]
pub(crate) fn mul_hi_u(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
}

#[inline(always)]
pub(crate) fn mul_hi_s(a: u32, b: u32) -> u32 {
    ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32
}

#[inline(always)]
pub(crate) fn mul_hi_u_long(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

#[inline(always)]
pub(crate) fn mul_hi_s_long(a: u64, b: u64) -> u64 {
    ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64
}

#[inline(always)]
pub(crate) fn mul_wide_s(a: u32, b: u32) -> u64 {
    (i64::from(a as i32) * i64::from(b as i32)) as u64
}

#[inline(always)]
pub(crate) fn div_u(a: u32, b: u32) -> u32 {
    a.checked_div(b).unwrap_or(u32::MAX)
}

#[inline(always)]
pub(crate) fn rem_u(a: u32, b: u32) -> u32 {
    a.checked_rem(b).unwrap_or(u32::MAX)
}

#[inline(always)]
pub(crate) fn div_s(a: u32, b: u32) -> u32 {
    if b == 0 { u32::MAX } else { (a as i32).wrapping_div(b as i32) as u32 }
}

#[inline(always)]
pub(crate) fn rem_s(a: u32, b: u32) -> u32 {
    if b == 0 { u32::MAX } else { (a as i32).wrapping_rem(b as i32) as u32 }
}

#[inline(always)]
pub(crate) fn div_u_long(a: u64, b: u64) -> u64 {
    a.checked_div(b).unwrap_or(u64::MAX)
}

#[inline(always)]
pub(crate) fn rem_u_long(a: u64, b: u64) -> u64 {
    a.checked_rem(b).unwrap_or(u64::MAX)
}

#[inline(always)]
pub(crate) fn div_s_long(a: u64, b: u64) -> u64 {
    if b == 0 { u64::MAX } else { (a as i64).wrapping_div(b as i64) as u64 }
}

#[inline(always)]
pub(crate) fn rem_s_long(a: u64, b: u64) -> u64 {
    if b == 0 { u64::MAX } else { (a as i64).wrapping_rem(b as i64) as u64 }
}

/// `prmt.b32` in its default mode.
#[inline(always)]
pub(crate) fn prmt(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = (u64::from(b) << 32) | u64::from(a);
    let mut result = 0;
    for at in 0..4 {
        let choice = (selector >> (4 * at)) & 0xf;
        let byte = (bytes >> (8 * (choice & 7))) as u32 & 0xff;
        let byte = if choice & 8 == 0 {
            byte
        } else if byte & 0x80 == 0 {
            0
        } else {
            0xff
        };
        result |= byte << (8 * at);
    }
    result
}

/// `lop3.b32`: each bit by the truth table.
#[inline(always)]
pub(crate) fn lop3(a: u32, b: u32, c: u32, table: u8) -> u32 {
    let mut result = 0;
    for row in 0..8 {
        if table >> row & 1 == 1 {
            let of = |value: u32, bit: u8| if row >> bit & 1 == 1 { value } else { !value };
            result |= of(a, 2) & of(b, 1) & of(c, 0);
        }
    }
    result
}

#[inline(always)]
pub(crate) fn shf_left(a: u32, b: u32, n: u32) -> u32 {
    ((((u64::from(b) << 32) | u64::from(a)) << n) >> 32) as u32
}

#[inline(always)]
pub(crate) fn shf_right(a: u32, b: u32, n: u32) -> u32 {
    (((u64::from(b) << 32) | u64::from(a)) >> n) as u32
}

/// Returns a mask of the low `length` bits.
#[inline(always)]
fn low(length: u32) -> u64 {
    if length > 63 { u64::MAX } else { (1 << length) - 1 }
}

/// Returns `length` bits from `position` on, or as many as there are.
#[inline(always)]
pub(crate) fn bfe_u(a: u32, position: u32, length: u32) -> u32 {
    (shr_u_long(u64::from(a), position & 0xff) & low(length & 0xff)) as u32
}

#[inline(always)]
pub(crate) fn bfe_s(a: u32, position: u32, length: u32) -> u32 {
    bfe_s_long(i64::from(a as i32) as u64, position, length) as u32
}

#[inline(always)]
pub(crate) fn bfe_u_long(a: u64, position: u32, length: u32) -> u64 {
    shr_u_long(a, position & 0xff) & low(length & 0xff)
}

/// Like [`bfe_u_long`], but the bits above are copies of the highest bit taken.
#[inline(always)]
pub(crate) fn bfe_s_long(a: u64, position: u32, length: u32) -> u64 {
    let length = length & 0xff;
    if length == 0 {
        return 0;
    }
    let above = 64 - length.min(64);
    shr_s_long(shr_s_long(a, position & 0xff) << above, above)
}

/// `bfi.b32`: puts the low bits of `a` into `b`.
#[inline(always)]
pub(crate) fn bfi(a: u32, b: u32, position: u32, length: u32) -> u32 {
    let mask = shl_long(low(length & 0xff), position & 0xff) as u32;
    (b & !mask) | (shl_long(u64::from(a), position & 0xff) as u32 & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [u32; 8] = [0, 1, 0x8000_0000, 0xffff_ffff, 0x1234_5678, 0xdead_beef, 0x7fff_ffff, 0x0000_ff00];

    #[test]
    fn shifts_clamp() {
        assert_eq!([shl(1, 31), shl(1, 32), shl(1, u32::MAX)], [0x8000_0000, 0, 0]);
        assert_eq!([shr_u(0x8000_0000, 31), shr_u(0x8000_0000, 32)], [1, 0]);
        assert_eq!([shr_s(0x8000_0000, 31), shr_s(0x8000_0000, 99)], [u32::MAX, u32::MAX]);
        assert_eq!([shl_long(1, 63), shl_long(1, 64)], [1 << 63, 0]);
        assert_eq!([shr_s_long(1 << 63, 200), shr_u_long(1 << 63, 64)], [u64::MAX, 0]);
    }

    #[test]
    fn division_by_zero_gives_all_ones() {
        assert_eq!([div_u(5, 0), rem_u(5, 0), div_s(5, 0), rem_s(5, 0)], [u32::MAX; 4]);
        assert_eq!([div_u_long(5, 0), rem_u_long(5, 0), div_s_long(5, 0), rem_s_long(5, 0)], [u64::MAX; 4]);
        assert_eq!([div_s(0x8000_0000, u32::MAX), rem_s(0x8000_0000, u32::MAX)], [0x8000_0000, 0]);
        assert_eq!([div_s(7_u32.wrapping_neg(), 2), rem_s(7_u32.wrapping_neg(), 2)], [3_u32.wrapping_neg(), u32::MAX]);
    }

    #[test]
    fn fields_bit_by_bit() {
        for a in VALUES {
            for position in 0..40 {
                for length in 0..40 {
                    let (mut unsigned, mut signed, mut inserted) = (0, 0, 0x5555_aaaa_u32);
                    let top = if length == 0 { 0 } else { a >> (position + length - 1).min(31) & 1 };
                    for bit in 0..32 {
                        let inside = bit < length && position + bit <= 31;
                        let taken = if inside { a >> (position + bit) & 1 } else { 0 };
                        unsigned |= taken << bit;
                        signed |= (if inside { taken } else { top }) << bit;
                        if inside {
                            let at = position + bit;
                            inserted = inserted & !(1 << at) | (a >> bit & 1) << at;
                        }
                    }
                    assert_eq!(bfe_u(a, position, length), unsigned, "{a:x} {position} {length}");
                    assert_eq!(bfe_s(a, position, length), signed, "{a:x} {position} {length}");
                    assert_eq!(bfi(a, 0x5555_aaaa, position, length), inserted, "{a:x} {position} {length}");
                }
            }
        }
        assert_eq!(bfe_s_long(0xff00, 8, 8), u64::MAX);
        assert_eq!(bfe_u_long(0xff00, 8, 8), 0xff);
    }

    #[test]
    fn permutations_and_tables() {
        assert_eq!(prmt(0x3322_1100, 0x7766_5544, 0x3210), 0x3322_1100);
        assert_eq!(prmt(0x3322_1100, 0x7766_5544, 0x7531), 0x7755_3311);
        assert_eq!(prmt(0x0000_80ff, 0, 0x89a0), 0xffff_00ff);
        for a in VALUES {
            for b in VALUES {
                let c = 0x0f0f_3355;
                assert_eq!(lop3(a, b, c, 0xca), (a & b) | (!a & c));
                assert_eq!(lop3(a, b, c, 0x96), a ^ b ^ c);
                assert_eq!(lop3(a, b, c, 0x80), a & b & c);
                assert_eq!(shf_left(a, b, 0), b);
                assert_eq!(shf_left(a, b, 8), b << 8 | a >> 24);
                assert_eq!(shf_right(a, b, 8), a >> 8 | b << 24);
                assert_eq!([shf_left(a, b, 32), shf_right(a, b, 32)], [a, b]);
            }
        }
    }
}
