//! Conversions between types of numbers that lose something, each with a name that says what.
//!
//! Clippy refuses `as` for them anywhere else. Lossless conversions are `From`. `as` remains for those that lose nothing
//! on 64-bit targets: from `u32` or an enum to `usize`, and from `usize` to `u64`.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "this module names what these casts lose"
)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("Logpond needs a 64-bit target: a size in a file must fit into memory's");

/// An integer of any width. Only the integers of the language are.
pub trait Integer: Copy + integer::Bits {}

mod integer {
    /// Keeps others from implementing [`super::Integer`].
    pub trait Bits {
        /// The low 64 bits of the number in two's complement: a smaller number is extended by its sign.
        fn bits(self) -> u64;

        /// The nearest `f64`.
        fn float(self) -> f64;
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {
        $(
            impl Integer for $integer {}

            impl integer::Bits for $integer {
                #[inline]
                #[allow(clippy::cast_lossless, clippy::unnecessary_cast)]
                fn bits(self) -> u64 {
                    self as u64
                }

                #[inline]
                #[allow(clippy::cast_lossless)]
                fn float(self) -> f64 {
                    self as f64
                }
            }
        )*
    };
}

integers!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128);

/// The same number. Loses nothing: all targets have 64 bits.
#[inline]
pub const fn to_usize(number: u64) -> usize {
    number as usize
}

/// The same 64 bits without a sign: a negative number becomes larger by 2^64.
#[inline]
pub const fn unsigned(number: i64) -> u64 {
    number as u64
}

/// The same 64 bits with a sign, in two's complement: 2^63 and more becomes smaller by 2^64.
#[inline]
pub const fn signed(number: u64) -> i64 {
    number as i64
}

/// The low 8 bits: the number modulo 2^8.
#[inline]
pub fn low_u8(number: impl Integer) -> u8 {
    number.bits() as u8
}

/// The low 16 bits: the number modulo 2^16.
#[inline]
pub fn low_u16(number: impl Integer) -> u16 {
    number.bits() as u16
}

/// The low 32 bits: the number modulo 2^32.
#[inline]
pub fn low_u32(number: impl Integer) -> u32 {
    number.bits() as u32
}

/// The low 64 bits: the number modulo 2^64.
#[inline]
pub fn low_u64(number: impl Integer) -> u64 {
    number.bits()
}

/// The low 8 bits in two's complement: -128 to 127.
#[inline]
pub fn low_i8(number: impl Integer) -> i8 {
    number.bits() as i8
}

/// The low 16 bits in two's complement: -32,768 to 32,767.
#[inline]
pub fn low_i16(number: impl Integer) -> i16 {
    number.bits() as i16
}

/// The low 32 bits in two's complement: -2^31 to 2^31 - 1.
#[inline]
pub fn low_i32(number: impl Integer) -> i32 {
    number.bits() as i32
}

/// The low 64 bits in two's complement: -2^63 to 2^63 - 1.
#[inline]
pub fn low_i64(number: impl Integer) -> i64 {
    number.bits() as i64
}

/// The nearest float, the even one of two. It is exact up to 2^53.
#[inline]
pub fn float(number: impl Integer) -> f64 {
    number.float()
}

/// The number without its fraction. A number outside of the range is the nearest of the range; NaN is 0.
#[inline]
pub const fn whole_i64(number: f64) -> i64 {
    number as i64
}

/// The number without its fraction. A number outside of the range is the nearest of the range; NaN is 0.
#[inline]
pub const fn whole_i128(number: f64) -> i128 {
    number as i128
}

/// The number without its fraction. A negative number is 0, as is NaN; a number above the range is the last of it.
#[inline]
pub const fn whole_u64(number: f64) -> u64 {
    number as u64
}

/// The number without its fraction. A negative number is 0, as is NaN; a number above the range is the last of it.
#[inline]
pub const fn whole_usize(number: f64) -> usize {
    number as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_keep_their_low_bits() {
        assert_eq!((low_u8(0x1ff_u64), low_u8(-1_i128)), (0xff, 0xff));
        assert_eq!(
            (low_u16(0x1_8000_u32), low_i16(0x1_8000_u32)),
            (0x8000, -0x8000)
        );
        // The sign is extended before.
        assert_eq!((low_u32(-1_i8), low_u64(-1_i32)), (u32::MAX, u64::MAX));
        assert_eq!((low_i8(0xff_u8), low_i32(1_u64 << 31)), (-1, i32::MIN));
        assert_eq!((low_u64(u128::MAX), low_i64(i128::MIN + 7)), (u64::MAX, 7));
        assert_eq!((unsigned(i64::MIN), signed(u64::MAX)), (1 << 63, -1));
        assert_eq!(to_usize(u64::MAX), usize::MAX);
    }

    #[test]
    fn floats_are_the_nearest_and_integers_the_nearest_of_their_range() {
        assert_eq!(float((1_u64 << 53) + 1), 9_007_199_254_740_992.0);
        assert_eq!(float(-3_i128), -3.0);
        assert_eq!((whole_i64(-1.9), whole_u64(-1.9)), (-1, 0));
        assert_eq!((whole_i64(1e300), whole_u64(1e300)), (i64::MAX, u64::MAX));
        assert_eq!((whole_i64(f64::NAN), whole_usize(f64::NAN)), (0, 0));
        assert_eq!(whole_i128(f64::NEG_INFINITY), i128::MIN);
    }
}
