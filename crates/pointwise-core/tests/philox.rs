//! The random generator against the known answers of Random123, the library of its authors.

use std::cell::Cell;

use pointwise_core::philox::{last_kept, philox4x32_10};
use pointwise_core::{Philox, RandomWord, Real, family::random};

#[test]
fn known_answers() {
    // Counter, key, block: Random123's `kat_vectors`, `philox4x32 10`.
    let vectors: [([u32; 4], [u32; 2], [u32; 4]); 3] = [
        ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
        ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
        (
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        ),
    ];
    for (counter, key, block) in vectors {
        assert_eq!(philox4x32_10(counter, key), block);
    }
}

#[test]
fn words_blocks_and_places_agree() {
    let philox = Philox::new(0x0123_4567_89ab_cdef).at(u64::MAX - 1);
    for i in 0..64 {
        // The counter has 64 bits and wraps. After it comes the number of the word's half.
        let counter = (u64::MAX - 1).wrapping_add(i / 8);
        let half = |part| {
            let block = philox4x32_10([counter as u32, (counter >> 32) as u32, 0, part], [0x89ab_cdef, 0x0123_4567]);
            let bytes = block.map(u32::to_le_bytes).concat();
            u16::from_le_bytes([bytes[i as usize % 8 * 2], bytes[i as usize % 8 * 2 + 1]])
        };
        assert_eq!(philox.word(i), (u32::from(half(0)) << 16 | u32::from(half(1))).rotate_left(1));
    }
    // The second call starts where the first ends.
    let first = Philox::new(7);
    for n in [1, 8, 9, 1000] {
        let offset = first.after(n).offset;
        assert_eq!(offset, n.div_ceil(8));
        assert_eq!(first.after(n).word(0), first.word(8 * offset));
    }
}

/// With half a word an answer is either the whole word's answer, or void and marked so.
#[test]
fn half_a_word_answers_or_asks() {
    let (mut asked, mut answered) = (0, 0);
    for i in 0..1000 {
        let word = Philox::new(3).word(i);
        let near = [word, word.wrapping_sub(1), word.wrapping_add(1), word ^ 0x8000, word & 0xFFFF_0000, word | 0xFFFF];
        for last in near.into_iter().chain([word ^ 1 << 17, word ^ 1 << 31, 0, u32::MAX, 1 << 31]) {
            let more = Cell::new(false);
            // The bits below the upper half mean nothing.
            let half = RandomWord::upper(word & 0xFFFE_0000 | Philox::new(4).word(i) >> 15, &more);
            let answer = half.is_at_most(last);
            assert_eq!(more.get(), word >> 17 == last >> 17);
            if more.get() {
                asked += 1;
            } else {
                assert_eq!(answer, word <= last);
                answered += 1;
            }
            assert_eq!(RandomWord::from(word).is_at_most(last), word <= last);
        }
        let more = Cell::new(false);
        _ = RandomWord::upper(word, &more).bits();
        assert!(more.get());
    }
    assert!(asked > 5000 && answered > 3000, "{asked} and {answered}");
}

/// The bits of a word and of its neighbours are uncorrelated: compares each bit of 2^16 words with each other.
#[test]
fn bits_are_independent() {
    let n = 1 << 16;
    let words: Vec<u32> = (0..n).map(|i| Philox::new(5).word(i)).collect();
    for lag in [0, 1, 2, 7, 8] {
        for a in 0..32 {
            for b in (0..32).filter(|b| lag > 0 || *b < a) {
                let pairs = words.iter().zip(&words[lag..]);
                let same = pairs.filter(|(x, y)| (*x >> a ^ *y >> b) & 1 == 0).count() as f64;
                let m = (words.len() - lag) as f64;
                let deviation = (2.0 * same - m) / m.sqrt();
                // The largest of 4,592 fair deviations exceeds this once in 400 tries; the seed is fixed.
                assert!(deviation.abs() < 5.0, "bits {a} and {b} at lag {lag}: {deviation:.1} standard deviations");
            }
        }
    }
}

#[test]
fn the_bound_counts_the_kept_words() {
    assert_eq!(random::last_kept(0.5), (1 << 31) - 1);
    assert_eq!(random::last_kept(0.25), 3 * (1 << 30) - 1);
    // 0.1 as an f32 is 13421773 / 2^27, which is 429496736 words of 2^32.
    assert_eq!(random::last_kept(0.1), u32::MAX - 429_496_736);
    assert_eq!(random::last_kept(1e-38), u32::MAX);
    // 1 - p = 2^-24: the words below 256 keep.
    assert_eq!(random::last_kept(1.0 - f32::EPSILON / 2.0), 255);
    // Exact, where 1 - p has more bits than an f64: p is a bit below two words.
    assert_eq!(random::last_kept((2.0 - f32::EPSILON) / 4_294_967_296.0), u32::MAX - 1);
}

#[test]
fn a_probability_out_of_range_keeps_all_or_none() {
    let words = [0, 1, 1 << 31, u32::MAX];
    fn dropped<T: Real>(p: f64, word: u32) -> f64 {
        T::constant(3.0).dropout(T::constant(p), RandomWord::from(word)).to_f64()
    }
    for p in [-0.0, -1e-300, -1e-17, -1e-12, -1e-9, -1e-6, -0.5, -1.0, -4.3e9, -1e30, f64::NEG_INFINITY] {
        assert_eq!(last_kept(p as f32), Some(u32::MAX), "{p:e}");
        for word in words {
            assert_eq!([dropped::<f64>(p, word), dropped::<f32>(p, word)], [3.0; 2], "{p:e}, word {word}");
        }
    }
    for p in [1.0, 1.0 + f64::EPSILON, 2.0, 1e30, f64::INFINITY, f64::NAN] {
        assert_eq!(last_kept(p as f32), None, "{p:e}");
        for word in words {
            assert_eq!([dropped::<f64>(p, word), dropped::<f32>(p, word)], [0.0; 2], "{p:e}, word {word}");
        }
    }
}
