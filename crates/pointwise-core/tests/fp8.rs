//! The 8-bit types: all 256 codes and the special values of the two formats. Rounding is tested with the conversions.

use pointwise_core::fp8::{F8E4M3, F8E5M2};

#[test]
fn all_codes() {
    for bits in 0..=u8::MAX {
        let x = F8E4M3::from_bits(bits);
        assert_eq!(x.to_bits(), bits);
        assert_eq!(x.is_nan(), bits & 0x7F == 0x7F);
        assert_eq!(x.to_f32().is_nan(), x.is_nan());
        assert_eq!(x.is_finite(), x.to_f32().is_finite());
        assert_eq!(x.is_infinite(), x.to_f32().is_infinite());
        if x.is_nan() {
            assert!(F8E4M3::from_f32(x.to_f32()).is_nan() && F8E4M3::from_f64(x.to_f64()).is_nan());
        } else {
            assert_eq!(F8E4M3::from_f32(x.to_f32()).to_bits(), bits);
            assert_eq!(F8E4M3::from_f64(x.to_f64()).to_bits(), bits);
        }

        let x = F8E5M2::from_bits(bits);
        assert_eq!(x.to_bits(), bits);
        assert_eq!(x.is_nan(), bits & 0x7F > 0x7C);
        assert_eq!(x.to_f32().is_nan(), x.is_nan());
        assert_eq!(x.is_finite(), x.to_f32().is_finite());
        assert_eq!(x.is_infinite(), x.to_f32().is_infinite());
        if x.is_nan() {
            assert!(F8E5M2::from_f32(x.to_f32()).is_nan() && F8E5M2::from_f64(x.to_f64()).is_nan());
        } else {
            assert_eq!(F8E5M2::from_f32(x.to_f32()).to_bits(), bits);
            assert_eq!(F8E5M2::from_f64(x.to_f64()).to_bits(), bits);
        }
    }
}

#[test]
fn e4m3_saturates() {
    for (x, bits) in [
        (448.0, 0x7E),
        (464.0, 0x7E),
        (800.0, 0x7E),
        (f32::MAX, 0x7E),
        (f32::INFINITY, 0x7E),
        (-449.0, 0xFE),
        (f32::NEG_INFINITY, 0xFE),
        (0.0, 0x00),
        (-0.0, 0x80),
        (2f32.powi(-9), 0x01),
        (2f32.powi(-10), 0x00),
        (-(2f32.powi(-10)), 0x80),
        (2f32.powi(-10) * 1.5, 0x01),
        (2f32.powi(-6), 0x08),
    ] {
        assert_eq!(F8E4M3::from_f32(x).to_bits(), bits, "{x:e}");
        assert_eq!(F8E4M3::from_f64(x as f64).to_bits(), bits, "{x:e}");
    }
    assert_eq!(F8E4M3::from_f32(f32::NAN).to_bits(), 0x7F);
    assert_eq!(F8E4M3::from_f32(-f32::NAN).to_bits(), 0x7F);
}

#[test]
fn e5m2_overflows() {
    for (x, bits) in [
        (57344.0, 0x7B),
        (61439.996, 0x7B),
        (61440.0, 0x7C),
        (80000.0, 0x7C),
        (f32::MAX, 0x7C),
        (f32::INFINITY, 0x7C),
        (-61440.0, 0xFC),
        (f32::NEG_INFINITY, 0xFC),
        (-0.0, 0x80),
        (2f32.powi(-16), 0x01),
        (2f32.powi(-17), 0x00),
        (2f32.powi(-14), 0x04),
    ] {
        assert_eq!(F8E5M2::from_f32(x).to_bits(), bits, "{x:e}");
        assert_eq!(F8E5M2::from_f64(x as f64).to_bits(), bits, "{x:e}");
    }
    // In f32 this would be the tie, and go to infinity.
    assert_eq!(F8E5M2::from_f64(61440.0 - 1e-6).to_bits(), 0x7B);
    assert_eq!(F8E5M2::from_f32(f32::NAN).to_bits(), 0x7F);
}

#[test]
fn constants_and_order() {
    assert_eq!((F8E4M3::MAX.to_f32(), F8E4M3::MIN.to_f32()), (448.0, -448.0));
    assert_eq!(F8E4M3::MIN_POSITIVE.to_f32(), 2f32.powi(-6));
    assert_eq!(F8E4M3::MIN_POSITIVE_SUBNORMAL.to_f32(), 2f32.powi(-9));
    assert_eq!((F8E5M2::MAX.to_f32(), F8E5M2::MIN.to_f32()), (57344.0, -57344.0));
    assert_eq!(F8E5M2::MIN_POSITIVE.to_f32(), 2f32.powi(-14));
    assert_eq!(F8E5M2::MIN_POSITIVE_SUBNORMAL.to_f32(), 2f32.powi(-16));
    assert_eq!(F8E5M2::INFINITY.to_f32(), f32::INFINITY);
    assert_eq!(F8E5M2::NEG_INFINITY.to_f32(), f32::NEG_INFINITY);
    assert!(F8E4M3::NAN.is_nan() && F8E5M2::NAN.is_nan());
    assert!(F8E4M3::NAN != F8E4M3::NAN);
    assert!(F8E4M3::from_bits(0x80) == F8E4M3::ZERO);
    assert!(F8E5M2::MIN < F8E5M2::ZERO && F8E5M2::MAX < F8E5M2::INFINITY);
    assert!(F8E4M3::NAN.partial_cmp(&F8E4M3::ZERO).is_none());
    assert_eq!(F8E4M3::default().to_bits(), 0);
    assert_eq!(format!("{} {:?}", F8E4M3::from_f32(1.5), F8E5M2::from_f32(-2.0)), "1.5 -2.0_f8e5m2");
}
