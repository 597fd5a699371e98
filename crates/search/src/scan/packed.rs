//! Whole numbers in the narrowest form that holds them: columns that are kept take a fraction of their
//! decoded size.

use logpond_record::cast;

/// Units that times are mostly whole multiples of, in nanoseconds.
const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;
const MICROSECOND: i64 = 1_000;

/// Numbers as multiples of a unit above a base.
#[derive(Debug)]
pub(super) struct PackedNumbers {
    base: i64,
    unit: i64,
    count: usize,
    above: Offsets,
}

#[derive(Debug)]
enum Offsets {
    /// All are the base.
    Nothing,
    Bytes(Box<[u8]>),
    Halves(Box<[u16]>),
    Words(Box<[u32]>),
    /// The numbers themselves, too far apart for anything else.
    Whole(Box<[i64]>),
}

impl PackedNumbers {
    /// Packs numbers.
    pub(super) fn new(numbers: &[i64]) -> PackedNumbers {
        let base = numbers.iter().copied().min().unwrap_or(0);
        PackedNumbers::of_unit::<1>(numbers, base).unwrap_or_else(|| PackedNumbers {
            base,
            unit: 1,
            count: numbers.len(),
            above: Offsets::Whole(numbers.into()),
        })
    }

    /// Packs codes of a dictionary; that of no value, the largest of all, is one less than the first one.
    pub(super) fn of_codes(codes: &[u32]) -> PackedNumbers {
        // Behind each other, as numbers above the one that stands for no value.
        let behind = |code: &u32| code.wrapping_add(1);
        let smallest = codes.iter().map(behind).min().unwrap_or(0);
        let largest = codes.iter().map(behind).max().unwrap_or(0);
        let all = || codes.iter().map(|code| behind(code) - smallest);
        let above = match largest - smallest {
            0 => Offsets::Nothing,
            1..=0xff => Offsets::Bytes(all().map(cast::low_u8).collect()),
            0x100..=0xffff => Offsets::Halves(all().map(cast::low_u16).collect()),
            _ => Offsets::Words(all().collect()),
        };
        PackedNumbers {
            base: i64::from(smallest) - 1,
            unit: 1,
            count: codes.len(),
            above,
        }
    }

    /// The codes of a dictionary again.
    pub(super) fn codes(&self) -> Vec<u32> {
        self.unpack(cast::low_u32)
    }

    /// Packs times in nanoseconds.
    pub(super) fn of_times(times: &[i64]) -> PackedNumbers {
        let base = times.iter().copied().min().unwrap_or(0);
        let packed = PackedNumbers::of_unit::<SECOND>(times, base)
            .or_else(|| PackedNumbers::of_unit::<MILLISECOND>(times, base))
            .or_else(|| PackedNumbers::of_unit::<MICROSECOND>(times, base));
        packed.unwrap_or_else(|| PackedNumbers::new(times))
    }

    /// Packs numbers that are whole multiples of a unit above a base, none is below it. `None` if one is no
    /// such multiple, or if so many do not fit.
    ///
    /// The unit is known to the compiler: there are millions of numbers, and divisions are slow.
    fn of_unit<const UNIT: i64>(numbers: &[i64], base: i64) -> Option<PackedNumbers> {
        let mut above = Vec::with_capacity(numbers.len());
        let (mut last, mut largest) = ((base, 0), 0);
        for number in numbers {
            // Times are mostly near each other, and many are the same.
            if *number != last.0 {
                let units = cast::unsigned(number.wrapping_sub(base)) / cast::unsigned(UNIT);
                let units = u32::try_from(units).ok()?;
                if base.wrapping_add(i64::from(units) * UNIT) != *number {
                    return None;
                }
                last = (*number, units);
                largest = largest.max(units);
            }
            above.push(last.1);
        }
        let above = match largest {
            0 => Offsets::Nothing,
            1..=0xff => Offsets::Bytes(above.into_iter().map(cast::low_u8).collect()),
            0x100..=0xffff => Offsets::Halves(above.into_iter().map(cast::low_u16).collect()),
            _ => Offsets::Words(above.into()),
        };
        Some(PackedNumbers {
            base,
            unit: UNIT,
            count: numbers.len(),
            above,
        })
    }

    /// The numbers again, each as `visit` makes it.
    pub(super) fn unpack<T: Clone>(&self, visit: impl Fn(i64) -> T) -> Vec<T> {
        let number = |above: i64| visit(self.base.wrapping_add(above.wrapping_mul(self.unit)));
        match &self.above {
            Offsets::Nothing => vec![visit(self.base); self.count],
            Offsets::Bytes(above) => above.iter().map(|a| number(i64::from(*a))).collect(),
            Offsets::Halves(above) => above.iter().map(|a| number(i64::from(*a))).collect(),
            Offsets::Words(above) => above.iter().map(|a| number(i64::from(*a))).collect(),
            Offsets::Whole(numbers) => numbers.iter().map(|number| visit(*number)).collect(),
        }
    }

    /// Bytes that the numbers take.
    pub(super) fn bytes(&self) -> usize {
        match &self.above {
            Offsets::Nothing => 0,
            Offsets::Bytes(above) => above.len(),
            Offsets::Halves(above) => above.len() * 2,
            Offsets::Words(above) => above.len() * 4,
            Offsets::Whole(numbers) => numbers.len() * 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use logpond_segment::rows::NULL;

    use super::*;

    #[test]
    fn numbers_take_no_more_than_they_need() {
        let second = 1_000_000_000;
        let table: [(&[i64], usize); 8] = [
            (&[], 0),
            (&[7, 7, 7], 0),
            (&[-1, 0, 254], 3),
            (&[-1, 255], 4),
            (&[0, 1 << 20], 8),
            (&[0, 1 << 40], 16),
            (&[i64::MIN, i64::MAX], 16),
            (&[5 * second + 3, 3, 9 * second + 3], 3),
        ];
        for (numbers, bytes) in table {
            let packed = PackedNumbers::of_times(numbers);
            assert_eq!(packed.bytes(), bytes, "{numbers:?}");
            assert_eq!(packed.unpack(|number| number), numbers);
        }
        assert_eq!(PackedNumbers::new(&[0, second]).bytes(), 8);
        let table: [(&[u32], usize); 5] = [
            (&[], 0),
            (&[NULL, NULL], 0),
            (&[NULL, 0, 254], 3),
            (&[NULL, 255], 4),
            (&[70_000, 5], 8),
        ];
        for (codes, bytes) in table {
            let packed = PackedNumbers::of_codes(codes);
            assert_eq!(packed.bytes(), bytes, "{codes:?}");
            assert_eq!(packed.codes(), codes);
        }
    }

    proptest! {
        #[test]
        fn numbers_come_back(
            numbers in proptest::collection::vec(any::<i64>(), 0..50),
            shift in 0u32..64,
        ) {
            let numbers: Vec<i64> = numbers.iter().map(|number| number >> shift).collect();
            prop_assert_eq!(&PackedNumbers::new(&numbers).unpack(|number| number), &numbers);
            prop_assert_eq!(&PackedNumbers::of_times(&numbers).unpack(|number| number), &numbers);
        }

        #[test]
        fn codes_come_back(
            codes in proptest::collection::vec(prop_oneof![Just(NULL), any::<u32>()], 0..50),
            shift in 0u32..32,
        ) {
            let codes: Vec<u32> = codes.iter().map(|code| match *code {
                NULL => NULL,
                code => code >> shift,
            }).collect();
            prop_assert_eq!(PackedNumbers::of_codes(&codes).codes(), codes);
        }
    }
}
