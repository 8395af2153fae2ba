//! Elements in the text of a fused kernel: from words of memory to registers of the compute type and back, and between types. The rules
//! are those of `pointwise_core::cast`.

use std::fmt::Write as _;

use pointwise_core::DType;

use super::Writer;
use crate::element::{is_fp8, is_narrow};

/// The format of an 8-bit float, for devices without an instruction for it.
struct Fp8 {
    /// The bits that f32's mantissa has more.
    shift: u32,
    /// The difference of the exponents' biases, in place.
    rebias: u32,
    /// A number above all subnormals, whose last place is theirs.
    magic: u32,
    /// The code of what is too large.
    top: u32,
}

const E4M3: Fp8 = Fp8 { shift: 20, rebias: (127 - 7) << 23, magic: 16_384.0_f32.to_bits(), top: 0x7E };
const E5M2: Fp8 = Fp8 { shift: 21, rebias: (127 - 15) << 23, magic: 128.0_f32.to_bits(), top: 0x7C };

impl Writer<'_> {
    /// Writes elements from words to registers of the compute type.
    pub(super) fn unpack(&mut self, dtype: DType, words: &[String], names: &[String]) {
        if is_fp8(dtype) {
            for (pair, names) in names.chunks(2).enumerate() {
                let word = self.temporary(32);
                line!(self, "shr.u32 {word}, {}, {};", words[pair / 2], 16 * (pair % 2));
                self.unpack_fp8(dtype, &word, names);
            }
            return;
        }
        for (lane, name) in names.iter().enumerate() {
            match dtype {
                DType::F32 | DType::I32 => line!(self, "mov.b32 {name}, {};", words[lane]),
                DType::I64 => line!(self, "mov.b64 {name}, {};", words[lane]),
                DType::BF16 if lane % 2 == 0 => line!(self, "shl.b32 {name}, {}, 16;", words[lane / 2]),
                DType::BF16 => line!(self, "and.b32 {name}, {}, -65536;", words[lane / 2]),
                DType::F16 => {
                    let (half, word) = (self.temporary(16), self.temporary(32));
                    line!(self, "shr.u32 {word}, {}, {};", words[lane / 2], 16 * (lane % 2));
                    line!(self, "cvt.u16.u32 {half}, {word};");
                    line!(self, "cvt.f32.f16 {name}, {half};");
                }
                DType::I16 => self.bits(name, &words[lane / 2], 16, lane % 2, true),
                DType::I8 => self.bits(name, &words[lane / 4], 8, lane % 4, true),
                _ => {
                    self.bits(name, &words[lane / 4], 8, lane % 4, false);
                    if dtype == DType::Bool {
                        line!(self, "min.u32 {name}, {name}, 1;");
                    }
                }
            }
        }
    }

    /// Writes part `at` of a word, `bits` wide, extended.
    fn bits(&mut self, name: &str, word: &str, bits: usize, at: usize, is_signed: bool) {
        let kind = if is_signed { "s32" } else { "u32" };
        line!(self, "shl.b32 {name}, {word}, {};", 32 - bits * (at + 1));
        line!(self, "shr.{kind} {name}, {name}, {};", 32 - bits);
    }

    /// Rounds one element of 8 or 16 bits.
    pub(super) fn packed_one(&mut self, dtype: DType, value: &str) -> String {
        let half = self.temporary(16);
        match dtype {
            DType::F16 | DType::BF16 => line!(self, "cvt.rn.{}.f32 {half}, {value};", dtype.name()),
            _ if is_fp8(dtype) => {
                let codes = self.fp8_codes(dtype, &[value.to_owned()]);
                line!(self, "cvt.u16.u32 {half}, {codes};");
            }
            _ => line!(self, "cvt.u16.u32 {half}, {value};"),
        }
        half
    }

    /// Rounds two or four elements to a word.
    pub(super) fn packed(&mut self, dtype: DType, lanes: &[String]) -> String {
        let word = self.temporary(32);
        if let (DType::F16 | DType::BF16, [low, high]) = (dtype, lanes) {
            line!(self, "cvt.rn.{}x2.f32 {word}, {high}, {low};", dtype.name());
            return word;
        }
        if let (true, [a, b, c, d]) = (is_fp8(dtype), lanes) {
            let low = self.fp8_codes(dtype, &[a.clone(), b.clone()]);
            let high = self.fp8_codes(dtype, &[c.clone(), d.clone()]);
            line!(self, "shl.b32 {high}, {high}, 16;");
            line!(self, "or.b32 {word}, {low}, {high};");
            return word;
        }
        let bits = dtype.bits();
        let mask = (1_u32 << bits) - 1;
        line!(self, "and.b32 {word}, {}, {mask};", lanes[0]);
        for (lane, value) in lanes.iter().enumerate().skip(1) {
            let part = self.temporary(32);
            line!(self, "and.b32 {part}, {value}, {mask};");
            line!(self, "shl.b32 {part}, {part}, {};", bits * lane);
            line!(self, "or.b32 {word}, {word}, {part};");
        }
        word
    }

    /// Converts a value from a register to a register.
    pub(super) fn convert(&mut self, from: DType, to: DType, x: &str, y: &str) {
        let is_wide = from == DType::I64;
        let bits = if is_wide { 64 } else { 32 };
        match (from.is_float(), to) {
            (is_float, DType::Bool) => {
                let is = self.predicate();
                if is_float {
                    line!(self, "setp.neu.f32 {is}, {x}, 0f00000000;");
                } else {
                    line!(self, "setp.ne.b{bits} {is}, {x}, 0;");
                }
                line!(self, "selp.b32 {y}, 1, 0, {is};");
            }
            // A narrow value that was not stored yet has more digits than its type.
            (true, _) if is_narrow(to) => self.rounded(to, x, y),
            (true, _) if !to.is_float() => self.whole(to, x, y),
            (true, _) => line!(self, "mov.b32 {y}, {x};"),
            (false, _) if to.is_float() => {
                line!(self, "cvt.rn.f32.s{bits} {y}, {x};");
                if is_narrow(to) {
                    self.rounded(to, y, y);
                }
            }
            (false, DType::I64) if !is_wide => line!(self, "cvt.s64.s32 {y}, {x};"),
            (false, DType::I64) => line!(self, "mov.b64 {y}, {x};"),
            (false, _) => {
                let word = self.temporary(32);
                line!(self, "{} {word}, {x};", if is_wide { "cvt.u32.u64" } else { "mov.b32" });
                match to.size() {
                    size @ (1 | 2) => self.bits(y, &word, 8 * size, 0, to != DType::U8),
                    _ => line!(self, "mov.b32 {y}, {word};"),
                }
            }
        }
    }

    /// Converts an f32 to an integer, towards zero.
    fn whole(&mut self, to: DType, x: &str, y: &str) {
        match to {
            DType::I64 => {
                // The instruction gives another number for NaN, of 64 bits alone.
                let is = self.predicate();
                line!(self, "cvt.rzi.s64.f32 {y}, {x};");
                line!(self, "setp.nan.f32 {is}, {x}, {x};");
                line!(self, "selp.b64 {y}, 0, {y}, {is};");
            }
            // The low bits of 64.
            DType::U8 => {
                let wide = self.temporary(64);
                line!(self, "cvt.rzi.s64.f32 {wide}, {x};");
                line!(self, "cvt.u32.u64 {y}, {wide};");
                line!(self, "and.b32 {y}, {y}, 255;");
            }
            _ => {
                line!(self, "cvt.rzi.s32.f32 {y}, {x};");
                let top = match to {
                    DType::I8 => i32::from(i8::MAX),
                    DType::I16 => i32::from(i16::MAX),
                    _ => return,
                };
                line!(self, "max.s32 {y}, {y}, {};", -top - 1);
                line!(self, "min.s32 {y}, {y}, {top};");
            }
        }
    }

    /// Rounds an f32 to a narrower float, as an f32.
    fn rounded(&mut self, to: DType, x: &str, y: &str) {
        if is_fp8(to) {
            let code = self.fp8_codes(to, &[x.to_owned()]);
            self.unpack_fp8(to, &code, &[y.to_owned()]);
            return;
        }
        let half = self.temporary(16);
        line!(self, "cvt.rn.{}.f32 {half}, {x};", to.name());
        if to == DType::F16 {
            line!(self, "cvt.f32.f16 {y}, {half};");
        } else {
            line!(self, "cvt.u32.u16 {y}, {half};");
            line!(self, "shl.b32 {y}, {y}, 16;");
        }
    }

    pub(super) fn predicate(&mut self) -> String {
        let name = self.label().replace('$', "%p");
        self.declared("pred", &name)
    }

    /// Writes the low one or two bytes of a word, 8-bit floats, as f32.
    fn unpack_fp8(&mut self, dtype: DType, word: &str, names: &[String]) {
        let halves = [self.temporary(16), self.temporary(16)];
        if self.has_fp8 {
            let pair = self.temporary(32);
            line!(self, "cvt.u16.u32 {}, {word};", halves[0]);
            line!(self, "cvt.rn.f16x2.{} {pair}, {};", instruction_of(dtype), halves[0]);
            line!(self, "mov.b32 {{{}, {}}}, {pair};", halves[0], halves[1]);
            for (half, name) in halves.iter().zip(names) {
                line!(self, "cvt.f32.f16 {name}, {half};");
            }
            return;
        }
        for (k, (half, name)) in halves.iter().zip(names).enumerate() {
            let byte = self.temporary(32);
            self.bits(&byte, word, 8, k, false);
            if dtype == DType::F8E5M2 {
                // It is the upper half of an f16.
                line!(self, "shl.b32 {byte}, {byte}, 8;");
                line!(self, "cvt.u16.u32 {half}, {byte};");
                line!(self, "cvt.f32.f16 {name}, {half};");
                continue;
            }
            let (abs, sign, is) = (self.temporary(32), self.temporary(32), self.predicate());
            line!(self, "and.b32 {abs}, {byte}, 127;");
            line!(self, "setp.eq.u32 {is}, {abs}, 127;");
            line!(self, "shl.b32 {abs}, {abs}, {};", E4M3.shift);
            // Exact, of subnormals too: by 2 to the difference of the biases.
            line!(self, "mul.rn.f32 {abs}, {abs}, 0f{:08X};", (127_u32 + 120) << 23);
            line!(self, "selp.b32 {abs}, 2143289344, {abs}, {is};");
            line!(self, "shr.u32 {sign}, {byte}, 7;");
            line!(self, "shl.b32 {sign}, {sign}, 31;");
            line!(self, "or.b32 {name}, {abs}, {sign};");
        }
    }

    /// Returns a word whose low bytes are one or two f32 as 8-bit floats.
    fn fp8_codes(&mut self, dtype: DType, values: &[String]) -> String {
        let codes = self.temporary(32);
        if self.has_fp8 {
            let half = self.temporary(16);
            let (low, high) = (&values[0], values.get(1).map_or("0f00000000", String::as_str));
            line!(self, "cvt.rn.satfinite.{}.f32 {half}, {high}, {low};", instruction_of(dtype));
            line!(self, "cvt.u32.u16 {codes}, {half};");
            if dtype == DType::F8E5M2 {
                // The instruction saturates; infinity is the next code. It begins at the tie with the next power of two.
                for (k, value) in values.iter().enumerate() {
                    let (abs, is) = (self.temporary(32), self.predicate());
                    line!(self, "abs.f32 {abs}, {value};");
                    line!(self, "setp.ge.f32 {is}, {abs}, 0f{:08X};", 61_440.0_f32.to_bits());
                    line!(self, "selp.b32 {abs}, {}, 0, {is};", 1 << (8 * k));
                    line!(self, "add.u32 {codes}, {codes}, {abs};");
                }
            }
            return codes;
        }
        line!(self, "mov.b32 {codes}, 0;");
        for (k, value) in values.iter().enumerate() {
            let code = self.fp8_code(if dtype == DType::F8E4M3 { &E4M3 } else { &E5M2 }, value);
            line!(self, "shl.b32 {code}, {code}, {};", 8 * k);
            line!(self, "or.b32 {codes}, {codes}, {code};");
        }
        codes
    }

    /// Rounds an f32 to an 8-bit float by integers, as `pointwise_core::convert` does.
    fn fp8_code(&mut self, format: &Fp8, x: &str) -> String {
        let Fp8 { shift, rebias, magic, top } = format;
        let [abs, code, small, sign] = std::array::from_fn(|_| self.temporary(32));
        let (is_small, is_nan) = (self.predicate(), self.predicate());
        line!(self, "and.b32 {abs}, {x}, 2147483647;");
        line!(self, "shr.u32 {code}, {abs}, {shift};");
        line!(self, "and.b32 {code}, {code}, 1;");
        line!(self, "add.u32 {code}, {code}, {abs};");
        line!(self, "add.u32 {code}, {code}, {};", (1 << (shift - 1)) - 1);
        line!(self, "shr.u32 {code}, {code}, {shift};");
        line!(self, "sub.u32 {code}, {code}, {};", rebias >> shift);
        line!(self, "add.rn.f32 {small}, {abs}, 0f{magic:08X};");
        line!(self, "sub.u32 {small}, {small}, {magic};");
        line!(self, "setp.lt.u32 {is_small}, {abs}, {};", rebias + (1 << 23));
        line!(self, "selp.b32 {code}, {small}, {code}, {is_small};");
        line!(self, "min.u32 {code}, {code}, {top};");
        line!(self, "shr.u32 {sign}, {x}, 31;");
        line!(self, "shl.b32 {sign}, {sign}, 7;");
        line!(self, "or.b32 {code}, {code}, {sign};");
        line!(self, "setp.gt.u32 {is_nan}, {abs}, 2139095040;");
        line!(self, "selp.b32 {code}, 127, {code}, {is_nan};");
        code
    }
}

/// The name that a pair of 8-bit floats has in instructions.
fn instruction_of(dtype: DType) -> &'static str {
    if dtype == DType::F8E4M3 { "e4m3x2" } else { "e5m2x2" }
}
