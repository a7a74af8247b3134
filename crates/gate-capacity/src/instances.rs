//! How many instances a peak needs.

use serde::Serialize;

use crate::CapacityError;

/// The share of its saturation that an instance is planned to be used to: above it queues grow faster than load.
pub const HEADROOM: f64 = 0.65;

/// How many instances, and what it was worked out from. Rates are in tokens per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Instances {
    /// The peak.
    pub peak: f64,
    /// Where one instance is saturated.
    pub saturation: f64,
    /// The share of it that is planned with.
    pub headroom: f64,
    /// What one instance is planned to serve.
    pub each: f64,
    /// How many are needed.
    pub instances: u64,
    /// The share of their saturation that they are used to at the peak.
    pub used: f64,
}

/// `⌈peak ÷ (saturation × headroom)⌉`.
///
/// # Errors
/// [`CapacityError::OutOfRange`] where a rate is not above 0 or the headroom not within 0 and 1, and
/// [`CapacityError::TooLarge`] beyond 2^53 instances.
pub fn instances(peak: f64, saturation: f64, headroom: f64) -> Result<Instances, CapacityError> {
    for (what, value) in [("a peak of", peak), ("a saturation of", saturation)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(CapacityError::range(what, value, "a number above 0"));
        }
    }
    if !(headroom > 0.0 && headroom <= 1.0) {
        return Err(CapacityError::range("a headroom of", headroom, "above 0 and at most 1"));
    }
    let each = saturation * headroom;
    let needed = up(peak / each);
    if needed >= 2_f64.powi(53) {
        return Err(CapacityError::TooLarge("this peak"));
    }
    Ok(Instances { peak, saturation, headroom, each, instances: needed as u64, used: peak / (needed * saturation) })
}

/// The next integer above; what is above one by no more than rounding is that one.
pub(crate) fn up(value: f64) -> f64 {
    let nearest = value.round();
    if (value - nearest).abs() <= 1e-9 * value.abs() { nearest } else { value.ceil() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_peak_is_divided_by_what_an_instance_is_planned_for() {
        // 10,000 ÷ (2,000 × 0.65) = 7.69.
        let planned = instances(10_000.0, 2_000.0, HEADROOM).unwrap();
        assert_eq!((planned.instances, planned.each), (8, 1_300.0));
        assert!((planned.used - 0.625).abs() < 1e-12);
        // 1,300 ÷ 1,300 is one, whatever .65 is in binary.
        assert_eq!(instances(1_300.0, 2_000.0, HEADROOM).unwrap().instances, 1);
        assert_eq!(instances(1_301.0, 2_000.0, HEADROOM).unwrap().instances, 2);
        assert_eq!(instances(3_900.0, 2_000.0, HEADROOM).unwrap().instances, 3);
        for (peak, saturation, headroom) in
            [(0.0, 1.0, 0.5), (1.0, f64::NAN, 0.5), (1.0, 1.0, 0.0), (1.0, 1.0, 1.1), (1e300, 1e-300, 1.0)]
        {
            assert!(instances(peak, saturation, headroom).is_err());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn they_are_as_few_as_suffice(peak in 1.0..1e7, saturation in 1.0..1e5, headroom in 0.05..1.0) {
            let planned = instances(peak, saturation, headroom).unwrap();
            let count = planned.instances as f64;
            prop_assert!(count * planned.each >= peak * (1.0 - 1e-9));
            prop_assert!((count - 1.0) * planned.each < peak);
        }
    }
}
