//! Whole numbers in the narrowest form that holds them: columns that are kept take a fraction of their
//! decoded size.

/// Units that times are mostly whole multiples of, in nanoseconds.
const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;
const MICROSECOND: i64 = 1_000;

/// Numbers as multiples of a unit above a base.
#[derive(Debug)]
pub(super) struct Packed {
    base: i64,
    unit: i64,
    count: usize,
    above: Above,
}

#[derive(Debug)]
enum Above {
    /// All are the base.
    Nothing,
    Bytes(Box<[u8]>),
    Halves(Box<[u16]>),
    Words(Box<[u32]>),
    /// The numbers themselves, too far apart for anything else.
    Whole(Box<[i64]>),
}

impl Packed {
    /// Packs numbers.
    pub(super) fn new(numbers: &[i64]) -> Packed {
        Packed::of_unit::<1>(numbers)
    }

    /// Packs times in nanoseconds.
    pub(super) fn of_times(times: &[i64]) -> Packed {
        let base = times.iter().copied().min().unwrap_or(0);
        if are_multiples::<SECOND>(times, base) {
            Packed::of_unit::<SECOND>(times)
        } else if are_multiples::<MILLISECOND>(times, base) {
            Packed::of_unit::<MILLISECOND>(times)
        } else if are_multiples::<MICROSECOND>(times, base) {
            Packed::of_unit::<MICROSECOND>(times)
        } else {
            Packed::of_unit::<1>(times)
        }
    }

    /// The unit is known to the compiler: there are millions of numbers, and divisions are slow.
    fn of_unit<const UNIT: i64>(numbers: &[i64]) -> Packed {
        let base = numbers.iter().copied().min().unwrap_or(0);
        let largest = numbers.iter().copied().max().unwrap_or(0);
        // None is smaller than the base.
        let above = |number: i64| number.wrapping_sub(base) as u64 / UNIT as u64;
        let all = || numbers.iter().map(|number| above(*number));
        let above = match above(largest) {
            0 => Above::Nothing,
            1..=0xff => Above::Bytes(all().map(|above| above as u8).collect()),
            0x100..=0xffff => Above::Halves(all().map(|above| above as u16).collect()),
            0x1_0000..=0xffff_ffff => Above::Words(all().map(|above| above as u32).collect()),
            _ => Above::Whole(numbers.into()),
        };
        Packed {
            base,
            unit: UNIT,
            count: numbers.len(),
            above,
        }
    }

    /// The numbers again, each as `visit` makes it.
    pub(super) fn unpack<T: Clone>(&self, visit: impl Fn(i64) -> T) -> Vec<T> {
        let number = |above: i64| visit(self.base.wrapping_add(above.wrapping_mul(self.unit)));
        match &self.above {
            Above::Nothing => vec![visit(self.base); self.count],
            Above::Bytes(above) => above.iter().map(|a| number(i64::from(*a))).collect(),
            Above::Halves(above) => above.iter().map(|a| number(i64::from(*a))).collect(),
            Above::Words(above) => above.iter().map(|a| number(i64::from(*a))).collect(),
            Above::Whole(numbers) => numbers.iter().map(|number| visit(*number)).collect(),
        }
    }

    /// Bytes that the numbers take.
    pub(super) fn bytes(&self) -> usize {
        match &self.above {
            Above::Nothing => 0,
            Above::Bytes(above) => above.len(),
            Above::Halves(above) => above.len() * 2,
            Above::Words(above) => above.len() * 4,
            Above::Whole(numbers) => numbers.len() * 8,
        }
    }
}

fn are_multiples<const UNIT: i64>(times: &[i64], base: i64) -> bool {
    times.iter().all(|time| time.wrapping_sub(base) % UNIT == 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
            let packed = Packed::of_times(numbers);
            assert_eq!(packed.bytes(), bytes, "{numbers:?}");
            assert_eq!(packed.unpack(|number| number), numbers);
        }
        assert_eq!(Packed::new(&[0, second]).bytes(), 8);
    }

    proptest! {
        #[test]
        fn numbers_come_back(
            numbers in proptest::collection::vec(any::<i64>(), 0..50),
            shift in 0u32..64,
        ) {
            let numbers: Vec<i64> = numbers.iter().map(|number| number >> shift).collect();
            prop_assert_eq!(&Packed::new(&numbers).unpack(|number| number), &numbers);
            prop_assert_eq!(&Packed::of_times(&numbers).unpack(|number| number), &numbers);
        }
    }
}
