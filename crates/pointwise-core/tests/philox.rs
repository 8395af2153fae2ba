//! The random generator against the known answers of Random123, the library of its authors.

use pointwise_core::philox::philox4x32_10;
use pointwise_core::{Philox, family::random};

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
        assert_eq!(philox.word(i), philox.block(i / 4)[i as usize % 4]);
        // The counter is 64 bits and wraps.
        let counter = (u64::MAX - 1).wrapping_add(i / 4);
        let block = philox4x32_10([counter as u32, (counter >> 32) as u32, 0, 0], [0x89ab_cdef, 0x0123_4567]);
        assert_eq!(philox.block(i / 4), block);
    }
    // The second call starts where the first ends.
    let first = Philox::new(7);
    for n in [1, 4, 5, 1000] {
        let blocks = first.after(n).offset;
        assert_eq!(blocks, n.div_ceil(4));
        assert_eq!(first.after(n).word(0), first.word(4 * blocks));
    }
}

#[test]
fn the_bound_counts_the_kept_words() {
    assert_eq!(random::last_kept(0.5), (1 << 31) - 1);
    assert_eq!(random::last_kept(0.25), 3 * (1 << 30) - 1);
    // 0.9 * 2^32 = 3865470566.4: words up to 3865470566 are below.
    assert_eq!(random::last_kept(0.1), 3_865_470_566);
    assert_eq!(random::last_kept(1e-300), u32::MAX);
    // 1 - p = 2^-53: only word 0 is below.
    assert_eq!(random::last_kept(1.0 - f64::EPSILON / 2.0), 0);
}
