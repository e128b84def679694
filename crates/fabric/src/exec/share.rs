//! How much of a copy takes the way through host memory beside the links between GPUs.

/// A share that follows the times of what was done with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    value: f64,
    least: f64,
    most: f64,
    /// Copies that it followed.
    seen: u32,
}

impl Share {
    /// Begins with `value`, and stays within `least..=most`, which are above 0.
    pub fn new(value: f64, least: f64, most: f64) -> Self {
        Share { value: value.clamp(least, most), least, most, seen: 0 }
    }

    /// The share.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Moves it towards where both ways take the same time, after a copy in which the links took `links` and the other way `host`, in any
    /// unit. Half of the way at first and a tenth later, and not far at once, so that one slow copy does not throw it off.
    pub fn observe(&mut self, links: f64, host: f64) {
        if links > 0.0 && host > 0.0 {
            let part = (1.0 / (1.0 + f64::from(self.seen) / 4.0)).clamp(0.1, 0.5);
            let factor = (links / host).powf(part).clamp(0.8, 1.25);
            self.seen = self.seen.saturating_add(1);
            self.value = (self.value * factor).clamp(self.least, self.most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ways of fixed rates, each with a time that it takes in any case.
    fn settle(links: (f64, f64), host: (f64, f64), noise: impl Fn(usize) -> f64) -> f64 {
        let mut share = Share::new(0.08, 0.005, 0.5);
        for i in 0..200 {
            let through = share.value();
            share.observe(
                (links.1 + (1.0 - through) / links.0) * noise(2 * i),
                (host.1 + through / host.0) * noise(2 * i + 1),
            );
        }
        share.value()
    }

    #[test]
    fn both_ways_end_together() {
        for (links, host) in [(400.0, 40.0), (400.0, 55.0), (100.0, 50.0), (40.0, 25.0)] {
            let found = settle((links, 0.0), (host, 0.0), |_| 1.0);
            let wanted = host / (links + host);
            assert!((found / wanted - 1.0).abs() < 0.01, "{found} of {wanted}");
            let noisy = settle((links, 0.0), (host, 0.0), |i| 1.0 + 0.1 * (i as f64 * 1.7).sin());
            assert!((noisy / wanted - 1.0).abs() < 0.15, "{noisy} of {wanted}");
        }
        // A way that takes long for anything at all gets little.
        assert!(settle((400.0, 0.0), (40.0, 0.002), |_| 1.0) < 0.03);
    }

    #[test]
    fn it_stays_within_its_bounds_whatever_is_measured() {
        let mut share = Share::new(7.0, 0.01, 0.5);
        assert_eq!(share.value(), 0.5);
        for (links, host) in [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (f64::NAN, 1.0), (1.0, f64::NAN)] {
            share.observe(links, host);
            assert_eq!(share.value(), 0.5);
        }
        (0..100).for_each(|_| share.observe(1.0, f64::INFINITY));
        assert_eq!(share.value(), 0.01);
        (0..100).for_each(|_| share.observe(f64::INFINITY, 1.0));
        assert_eq!(share.value(), 0.5);
    }
}
