//! How a server counts, learnt from warm-up.

/// Where a server's scale may lie: no tokenizer counts English prose more than twice, or less than half, as long as
/// the estimate.
const SCALES: (f64, f64) = (0.5, 2.0);

/// Lengths must differ by this share of the shortest before a scale is read off them: closer ones tell more of the
/// texts than of the tokenizer.
const LEAST_SPREAD: f64 = 0.2;

/// The server's count of a text: `scale` × its estimate + `added`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fit {
    /// How much longer than estimated the server counts prose.
    scale: f64,
    /// What the server's chat template adds, in tokens.
    added: f64,
}

impl Fit {
    /// Fits pairs of (planned, counted), with up to `most_added` tokens for the template; `None` where no pair is of
    /// use.
    ///
    /// Both come from a line of least squares where the planned lengths differ enough; else the scale is 1, and only
    /// what is added is fitted. A template takes nothing away, so a line that starts below 0 is turned up to it about
    /// its middle.
    pub(crate) fn of(pairs: &[(u32, u64)], most_added: f64) -> Option<Self> {
        let points: Vec<(f64, f64)> = pairs
            .iter()
            .filter(|(planned, counted)| *planned > 0 && *counted > 0)
            .map(|&(planned, counted)| (f64::from(planned), counted as f64))
            .collect();
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
        let (planned, counted) = (mean(|point| point.0), mean(|point| point.1));
        let shortest = points.iter().map(|point| point.0).reduce(f64::min)?;
        let longest = points.iter().map(|point| point.0).reduce(f64::max)?;

        let within = |scale: f64| scale.clamp(SCALES.0, SCALES.1);
        let mut scale = 1.0;
        if longest - shortest >= LEAST_SPREAD * shortest {
            let covariance: f64 = points.iter().map(|(x, y)| (x - planned) * (y - counted)).sum();
            let variance: f64 = points.iter().map(|(x, _)| (x - planned).powi(2)).sum();
            scale = within(covariance / variance);
        }
        let added = counted - scale * planned;
        if added < 0.0 {
            return Some(Self { scale: within(counted / planned), added: 0.0 });
        }
        Some(Self { scale, added: added.min(most_added) })
    }

    /// How long a text must be by the estimate, in thousandths of a token, for the server to count `planned` tokens.
    pub(crate) fn goal(self, planned: u32) -> u64 {
        let tokens = (f64::from(planned) - self.added) / self.scale;
        // Saturates at 0 where the template alone is longer.
        (1000.0 * tokens).round() as u64
    }

    /// The same of a message that the template adds next to nothing to: one of a later turn.
    pub(crate) fn goal_of_later(self, planned: u32) -> u64 {
        Self { added: 0.0, ..self }.goal(planned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(pairs: &[(u32, u64)]) -> Fit {
        Fit::of(pairs, 200.0).unwrap()
    }

    #[test]
    fn a_line_is_found_again() {
        let fit = fit(&[(400, 472), (500, 582), (600, 692), (700, 802)]);
        assert!((fit.scale - 1.1).abs() < 1e-9 && (fit.added - 32.0).abs() < 1e-9, "{fit:?}");
        assert_eq!(fit.goal(582), 500_000);
        assert_eq!(fit.goal(32), 0);
        assert_eq!(fit.goal(1), 0);
    }

    #[test]
    fn lengths_too_close_together_tell_only_what_is_added() {
        for pairs in [&[(550, 580)][..], &[(550, 570), (550, 590)], &[(545, 500), (555, 660)]] {
            assert_eq!(fit(pairs), Fit { scale: 1.0, added: 30.0 });
        }
    }

    #[test]
    fn nothing_is_taken_away_and_a_hidden_prompt_comes_on_top() {
        // A line that starts at -100.
        assert_eq!(fit(&[(400, 380), (600, 620)]), Fit { scale: 1.0, added: 0.0 });
        assert_eq!(fit(&[(550, 495)]), Fit { scale: 0.9, added: 0.0 });
        assert_eq!(fit(&[(400, 1400), (600, 1600)]), Fit { scale: 1.0, added: 200.0 });
        assert_eq!(Fit::of(&[(400, 1400), (600, 1640)], 0.0), Some(Fit { scale: 1.2, added: 0.0 }));
    }

    #[test]
    fn what_no_server_counts_stays_in_bounds() {
        for pairs in [
            &[(400, 4_000), (600, 6_000)][..],
            &[(400, 1), (600, 1)],
            &[(400, 900), (600, 300)],
            &[(1, u64::MAX), (u32::MAX, u64::MAX)],
            &[(1, 1), (u32::MAX, u64::MAX)],
        ] {
            let fit = fit(pairs);
            assert!((0.5..=2.0).contains(&fit.scale) && (0.0..=200.0).contains(&fit.added), "{pairs:?}: {fit:?}");
            assert!(fit.goal(10_000_000) <= 20_000_000_000);
        }
    }

    #[test]
    fn without_a_count_nothing_is_fitted() {
        for pairs in [&[][..], &[(550, 0)], &[(0, 30)]] {
            assert_eq!(Fit::of(pairs, 200.0), None);
        }
    }
}
