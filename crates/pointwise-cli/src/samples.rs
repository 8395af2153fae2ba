//! What the tour feeds the ops: the same values on every machine.

use pointwise::DType;
use pointwise_core::convert;

use crate::random::Random;

/// Elements for the types that have too many codes to try them all. A prime: no vector width divides it.
const COUNT: usize = 10_007;

/// The bytes of a tensor's elements. All codes of types of up to 16 bits; for wider ones special values, numbers of
/// every magnitude, and many where functions bend.
pub(crate) fn bytes(dtype: DType) -> Vec<u8> {
    match dtype {
        DType::Bool => [0, 1].repeat(128),
        DType::F8E4M3 | DType::F8E5M2 | DType::I8 | DType::U8 => (0..=u8::MAX).collect(),
        DType::F16 | DType::BF16 | DType::I16 => (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect(),
        DType::F32 => floats().into_iter().flat_map(f32::to_ne_bytes).collect(),
        DType::I32 => integers(i64::from(i32::MAX)).into_iter().flat_map(|x| (x as i32).to_ne_bytes()).collect(),
        DType::I64 => integers(i64::MAX).into_iter().flat_map(i64::to_ne_bytes).collect(),
    }
}

/// Where functions bend; of each its negative too.
const SPECIAL_FLOATS: [f32; 20] = [
    0.0,
    f32::from_bits(1),
    f32::MIN_POSITIVE,
    f32::EPSILON,
    0.5,
    1.0,
    1.5,
    2.0,
    2.5,
    3.0,
    6.0,
    20.0,
    88.722_84,
    103.972_08,
    16_777_216.0,
    f32::MAX,
    f32::INFINITY,
    f32::NAN,
    std::f32::consts::FRAC_PI_2,
    std::f32::consts::PI,
];

fn special_floats() -> impl Iterator<Item = f64> {
    SPECIAL_FLOATS.iter().chain(&SPECIAL_FLOATS.map(|x| -x)).map(|&x| f64::from(x)).collect::<Vec<_>>().into_iter()
}

fn floats() -> Vec<f32> {
    let mut values = SPECIAL_FLOATS.to_vec();
    values.extend(values.clone().iter().map(|x| -x));
    let mut random = Random::new(1);
    while values.len() < COUNT {
        values.push(match values.len() % 3 {
            // Any code: every magnitude, and NaN in many guises.
            0 => f32::from_bits(random.next() as u32),
            // Where exponentials neither vanish nor overflow.
            1 => (random.unit() * 200.0 - 100.0) as f32,
            _ => (random.unit() * 12.0 - 6.0) as f32,
        });
    }
    values
}

/// Where types end.
const SPECIAL_INTEGERS: [i64; 16] = [0, 1, -1, 2, -2, 3, 7, 127, 128, -128, -129, 255, 256, 32767, -32768, 65535];

/// Numbers up to `max` that f64 has, since the oracle is told them in f64.
fn integers(max: i64) -> Vec<i64> {
    let exact = |x: i64| if x.unsigned_abs() >> 53 == 0 { x } else { x & !0x7FF };
    let mut values = SPECIAL_INTEGERS.to_vec();
    values.extend([max, -max, -max - 1]);
    let mut random = Random::new(2);
    while values.len() < COUNT {
        // Every number of bits alike.
        let bits = 1 + random.next() % u64::from(max.ilog2() + 1);
        let magnitude = (random.next() >> (64 - bits)) as i64;
        values.push(if random.next().is_multiple_of(2) { magnitude } else { -magnitude });
    }
    values.into_iter().map(exact).collect()
}

/// Pairs or triples of elements, one tensor's bytes an operand: all pairs of 8-bit codes; of other types special values
/// with each other, and any with any.
pub(crate) fn tuples(dtypes: &[DType]) -> Vec<Vec<u8>> {
    let pools: Vec<(Vec<u8>, usize)> = dtypes.iter().map(|&dtype| pool(dtype)).collect();
    let len = |k: usize| pools[k].0.len() / dtypes[k].size();
    let mut tuples = vec![Vec::new(); dtypes.len()];
    let mut push = |k: usize, at: usize| {
        let size = dtypes[k].size();
        tuples[k].extend_from_slice(&pools[k].0[at * size..(at + 1) * size]);
    };
    if dtypes.len() == 2 && dtypes.iter().all(|dtype| dtype.size() == 1) {
        for (a, b) in (0..len(0)).flat_map(|a| (0..len(1)).map(move |b| (a, b))) {
            push(0, a);
            push(1, b);
        }
        return tuples;
    }
    let mut random = Random::new(3);
    for i in 0..2 * COUNT {
        for (k, (_, special)) in pools.iter().enumerate() {
            let most = if i % 2 == 0 { *special } else { len(k) };
            push(k, (random.next() % most as u64) as usize);
        }
    }
    tuples
}

/// Elements of a type, the special ones first, and how many those are.
fn pool(dtype: DType) -> (Vec<u8>, usize) {
    let first: Vec<u8> = match dtype {
        DType::F16 => special_floats().flat_map(|x| convert::f64_to_f16(x).to_ne_bytes()).collect(),
        DType::BF16 => special_floats().flat_map(|x| convert::f64_to_bf16(x).to_ne_bytes()).collect(),
        DType::I16 => SPECIAL_INTEGERS.iter().flat_map(|&x| (x as i16).to_ne_bytes()).collect(),
        _ => Vec::new(),
    };
    let special = match dtype {
        DType::I32 | DType::I64 => SPECIAL_INTEGERS.len() + 3,
        DType::F32 | DType::F16 | DType::BF16 => special_floats().count(),
        DType::I16 => SPECIAL_INTEGERS.len(),
        _ => bytes(dtype).len(),
    };
    ([first, bytes(dtype)].concat(), special)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_of_elements_and_exact_in_f64() {
        for dtype in DType::ALL {
            assert_eq!(bytes(dtype).len() % dtype.size(), 0, "{dtype}");
        }
        for max in [i64::from(i32::MAX), i64::MAX] {
            let values = integers(max);
            assert!(values.contains(&(-max - 1)) && values.contains(&0));
            for value in values {
                assert_eq!(value as f64 as i128, i128::from(value));
                assert!((-max - 1..=max).contains(&value));
            }
        }
    }

    #[test]
    fn tuples_are_of_one_length() {
        let lengths = |dtypes: &[DType]| tuples(dtypes).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(&[DType::F8E4M3; 2]), [65_536; 2]);
        assert_eq!(lengths(&[DType::F32; 2]), [2 * COUNT * 4; 2]);
        assert_eq!(lengths(&[DType::Bool, DType::I16, DType::I16]), [2 * COUNT, 4 * COUNT, 4 * COUNT]);
    }
}
