//! Charts of what benches measured: lines over sizes, or bars where there is one size.

use tandem_fabric::topology::picture::{fitting, Anchor, Picture, Point, Stroke, Text, FAINT, GREY, PALETTE};

const WIDTH: f64 = 800.0;
const LEAST_HEIGHT: f64 = 440.0;
const TOP: f64 = 52.0;
const BOTTOM: f64 = 56.0;
const LEFT: f64 = 84.0;
/// Of the legend's column, and of the names of bars.
const NAMES: f64 = 262.0;
const MARGIN: f64 = 14.0;
/// Pixels of a bar with the space below it.
const BAR: f64 = 26.0;
const FONT: f64 = 11.0;
/// Greatest over least value from which on a scale is logarithmic.
const WIDE: f64 = 50.0;

/// Values over sizes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chart {
    pub(crate) title: String,
    /// What the sizes count.
    pub(crate) x: String,
    /// What the values are, with their unit.
    pub(crate) y: String,
    pub(crate) series: Vec<Series>,
}

/// The values of one way, or what bounds them.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// Of the series whose bound it is.
    pub(crate) bounds: Option<String>,
    pub(crate) points: Vec<Point>,
}

impl Chart {
    /// Adds a value, if it can be drawn.
    pub(crate) fn add(&mut self, name: &str, bounds: Option<&str>, point: Point) {
        if !(point.0.is_finite() && point.1.is_finite() && point.0 > 0.0 && point.1 > 0.0) {
            return;
        }
        match self.series.iter_mut().find(|s| s.name == name) {
            Some(series) => series.points.push(point),
            None => self.series.push(Series { name: name.into(), bounds: bounds.map(Into::into), points: vec![point] }),
        }
    }

    /// The drawing; `None` where there is nothing to draw.
    pub(crate) fn picture(&self) -> Option<Picture> {
        let first = self.series.first()?.points.first()?.0;
        let is_one_size = self.series.iter().flat_map(|s| &s.points).all(|p| p.0 == first);
        Some(if is_one_size { self.bars(first) } else { self.lines() })
    }

    /// A series' colour, which is that of what it bounds, and whether its lines are broken.
    fn stroke(&self, i: usize, width: f64) -> Stroke {
        let series = &self.series[i];
        let measured = |name: &str| self.series.iter().filter(|s| s.bounds.is_none()).position(|s| s.name == name);
        let of = measured(series.bounds.as_deref().unwrap_or(&series.name)).unwrap_or(i);
        let colour = PALETTE[of % PALETTE.len()];
        if series.bounds.is_some() {
            Stroke::dashed(colour, width)
        } else {
            Stroke::new(colour, width)
        }
    }

    fn titled(&self, height: f64) -> Picture {
        let mut picture = Picture::new(WIDTH, height);
        picture.text(Text::new((MARGIN, 26.0), 16.0, fitting(&self.title, 16.0, WIDTH - 2.0 * MARGIN)));
        picture
    }

    fn lines(&self) -> Picture {
        let legend = self.series.len() as f64 * 20.0;
        let mut picture = self.titled(LEAST_HEIGHT.max(TOP + legend + BOTTOM));
        // One line whose name is that of the axis needs no legend.
        let has_legend = self.series.len() > 1 || self.series.iter().any(|series| series.name != self.y);
        let right = WIDTH - MARGIN - if has_legend { NAMES } else { MARGIN };
        let bottom = picture.height - BOTTOM;
        let all = || self.series.iter().flat_map(|s| &s.points);
        let x = Scale::of_powers(all().map(|p| p.0));
        let y = Scale::of_values(all().map(|p| p.1));
        let at = |p: &Point| (LEFT + x.part(p.0) * (right - LEFT), bottom - y.part(p.1) * (bottom - TOP));
        for (value, text) in &y.ticks {
            let (_, v) = at(&(1.0, *value));
            picture.line(&[(LEFT, v), (right, v)], Stroke::new(FAINT, 1.0));
            let label = Text::new((LEFT - 8.0, v + 4.0), FONT, text.clone());
            picture.text(label.anchored(Anchor::End).coloured(GREY));
        }
        for (value, text) in &x.ticks {
            let (u, _) = at(&(*value, 1.0));
            picture.line(&[(u, bottom), (u, bottom + 5.0)], Stroke::new(GREY, 1.0));
            let label = Text::new((u, bottom + 19.0), FONT, text.clone());
            picture.text(label.anchored(Anchor::Middle).coloured(GREY));
        }
        picture.line(&[(LEFT, TOP), (LEFT, bottom), (right, bottom)], Stroke::new(GREY, 1.0));
        let label = Text::new(((LEFT + right) / 2.0, bottom + 42.0), 12.0, self.x.clone());
        picture.text(label.anchored(Anchor::Middle));
        let label = Text::new((MARGIN + 12.0, (TOP + bottom) / 2.0), 12.0, self.y.clone());
        picture.text(Text { is_upright: true, ..label.anchored(Anchor::Middle) });
        for (i, series) in self.series.iter().enumerate() {
            let mut points: Vec<Point> = series.points.iter().map(at).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let stroke = self.stroke(i, 2.0);
            // Of more series than colours the further ones have square marks.
            let radius = if i < PALETTE.len() { 3.0 } else { 0.0 };
            let mark = |picture: &mut Picture, at: Point| {
                if series.bounds.is_none() {
                    picture.block(at, (6.0, 6.0), radius, stroke.colour, Stroke::new(stroke.colour, 1.0));
                }
            };
            picture.line(&points, stroke.clone());
            points.iter().for_each(|p| mark(&mut picture, *p));
            if !has_legend {
                continue;
            }
            let v = TOP + 8.0 + 20.0 * i as f64;
            picture.line(&[(right + 16.0, v), (right + 42.0, v)], stroke.clone());
            mark(&mut picture, (right + 29.0, v));
            picture.text(Text::new((right + 50.0, v + 4.0), FONT, fitting(&series.name, FONT, NAMES - 50.0)));
        }
        picture
    }

    fn bars(&self, size: f64) -> Picture {
        let bottom = TOP + self.series.len() as f64 * BAR + 10.0;
        let mut picture = self.titled(bottom + BOTTOM);
        let (left, right) = (NAMES + 2.0 * MARGIN, WIDTH - MARGIN - 70.0);
        let scale = Scale::from_zero(self.series.iter().flat_map(|s| &s.points).map(|p| p.1));
        let at = |v: f64| left + scale.part(v) * (right - left);
        for (value, text) in &scale.ticks {
            picture.line(&[(at(*value), TOP), (at(*value), bottom)], Stroke::new(FAINT, 1.0));
            let label = Text::new((at(*value), bottom + 16.0), FONT, text.clone());
            picture.text(label.anchored(Anchor::Middle).coloured(GREY));
        }
        for (i, series) in self.series.iter().enumerate() {
            let y = TOP + (i as f64 + 0.5) * BAR;
            let value = series.points.iter().map(|p| p.1).fold(0.0, f64::max);
            let name = Text::new((left - 10.0, y + 4.0), FONT, fitting(&series.name, FONT, NAMES));
            picture.text(name.anchored(Anchor::End));
            let stroke = self.stroke(i, 1.5);
            let fill = if series.bounds.is_some() { "#ffffff" } else { stroke.colour };
            let middle = ((left + at(value)) / 2.0, y);
            picture.block(middle, (at(value) - left, BAR - 10.0), 0.0, fill, stroke);
            picture.text(Text::new((at(value) + 6.0, y + 4.0), FONT, digits(value)));
        }
        picture.line(&[(left, TOP), (left, bottom)], Stroke::new(GREY, 1.0));
        let what = format!("{}; {} {}", self.y, self.x, count(size));
        let label = Text::new(((left + right) / 2.0, bottom + 38.0), 12.0, fitting(&what, 12.0, right - left));
        picture.text(label.anchored(Anchor::Middle));
        picture
    }
}

/// Three significant digits, as decimals where there are such.
pub(crate) fn digits(value: f64) -> String {
    let whole = value.abs().max(1e-12).log10().floor() as i32 + 1;
    format!("{value:.*}", usize::try_from(3 - whole).unwrap_or(0).min(9))
}

/// A value beside an axis, short enough for its place.
fn label(value: f64, decimals: usize) -> String {
    match value {
        v if v >= 1e5 => format!("{:e}", v.round()),
        v if decimals <= 5 || v == 0.0 => format!("{v:.*}", decimals.min(5)),
        v => format!("{v:.1e}"),
    }
}

/// A size: `2^20`, if it is a power of two that is longer in digits.
fn count(value: f64) -> String {
    let exponent = value.log2();
    match exponent == exponent.round() && exponent >= 10.0 {
        true => format!("2^{exponent}"),
        false => format!("{value:.0}"),
    }
}

/// From values to parts of an axis.
struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
    /// Where the axis is labelled, and how.
    ticks: Vec<(f64, String)>,
}

impl Scale {
    fn part(&self, value: f64) -> f64 {
        match self.is_log {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        }
    }

    /// Powers of two, at most ten of them labelled.
    fn of_powers(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = range(values);
        let (first, last) = (low.log2().floor() as i32, high.log2().ceil() as i32);
        let step = ((last - first).max(1) as usize).div_ceil(9);
        let ticks = (first..=last).step_by(step).map(|k| (2f64.powi(k), count(2f64.powi(k)))).collect();
        Self { low: 2f64.powi(first), high: 2f64.powi(last.max(first + 1)), is_log: true, ticks }
    }

    /// From nothing on, or by powers of ten where values differ much.
    fn of_values(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = range(values);
        if high / low < WIDE {
            return Self::from_zero([high].into_iter());
        }
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let step = ((last - first).max(1) as usize).div_ceil(9);
        let tick = |k: i32| (10f64.powi(k), label(10f64.powi(k), usize::try_from(-k).unwrap_or(0)));
        Self {
            low: 10f64.powi(first),
            high: 10f64.powi(last),
            is_log: true,
            ticks: (first..=last).step_by(step).map(tick).collect(),
        }
    }

    /// Steps of 1, 2 or 5 and as many decimals as they need.
    fn from_zero(values: impl Iterator<Item = f64>) -> Self {
        let high = range(values).1 * 1.02;
        let power = 10f64.powi((high / 6.0).log10().floor() as i32);
        let step = [1.0, 2.0, 5.0, 10.0].map(|f| f * power).into_iter().find(|s| high / s <= 6.0).unwrap_or(high);
        let decimals = usize::try_from(-(step.log10() + 1e-9).floor() as i32).unwrap_or(0);
        let count = (high / step).ceil() as u32;
        let ticks = (0..=count).map(|i| (f64::from(i) * step, label(f64::from(i) * step, decimals))).collect();
        Self { low: 0.0, high: f64::from(count) * step, is_log: false, ticks }
    }
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), v| (low.min(v), high.max(v)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_fabric::topology::picture::{overlap, Shape};

    pub(crate) fn chart(sizes: std::ops::Range<u32>, series: usize, value: impl Fn(u32, usize) -> f64) -> Chart {
        let mut chart = Chart { title: "sort <u64>".into(), x: "keys".into(), y: "Gkey/s".into(), series: Vec::new() };
        for i in 0..series {
            for k in sizes.clone() {
                chart.add(&format!("way {i}"), None, (f64::from(k).exp2(), value(k, i)));
                chart.add(
                    &format!("bound: way {i}"),
                    Some(&format!("way {i}")),
                    (f64::from(k).exp2(), 2.0 * value(k, i)),
                );
            }
        }
        chart
    }

    /// No text lies over another, or outside.
    fn check(picture: &Picture) {
        let texts: Vec<_> =
            picture.shapes.iter().filter_map(|s| if let Shape::Text(t) = s { Some(t) } else { None }).collect();
        for (i, text) in texts.iter().enumerate() {
            let b = text.bounds();
            assert!(b[0] >= 0.0 && b[1] >= 0.0 && b[2] <= picture.width && b[3] <= picture.height, "{text:?} {b:?}");
            for other in &texts[i + 1..] {
                assert!(!overlap(b, other.bounds()), "{text:?} {other:?}");
            }
        }
    }

    #[test]
    fn texts_of_charts_stay_apart() {
        for sizes in [10..11, 10..12, 3..40] {
            for series in [1, 3, 20] {
                for scale in [1e-4, 1.0, 3e5] {
                    check(
                        &chart(sizes.clone(), series, |k, i| scale * f64::from(1 + k) * (1 + i) as f64)
                            .picture()
                            .unwrap(),
                    );
                    check(&chart(sizes.clone(), series, |k, _| scale * f64::from(k).exp2()).picture().unwrap());
                }
            }
        }
        let long = chart(4..6, 1, |_, _| 1.0);
        check(
            &Chart {
                title: "W".repeat(500),
                series: vec![Series { name: "m".repeat(99), ..long.series[0].clone() }],
                ..long
            }
            .picture()
            .unwrap(),
        );
    }

    #[test]
    fn axes_have_units_powers_and_decimals() {
        let svg = chart(18..23, 2, |k, i| 0.1 + 0.01 * f64::from(k) * (i + 1) as f64).picture().unwrap().to_svg();
        for text in
            ["2^18", "2^22", "0.2", ">keys<", ">Gkey/s<", "sort &lt;u64&gt;", "bound: way 1", "stroke-dasharray"]
        {
            assert!(svg.contains(text), "{text} in {svg}");
        }
        assert_eq!(svg.matches("<polyline").count() - 5 - svg.matches("#cfcfcf").count() - 1, 8, "{svg}");
        // Rates that differ much, on powers of ten.
        let svg = chart(10..30, 1, |k, _| f64::from(k).exp2() / 1e5).picture().unwrap().to_svg();
        assert!(svg.contains(">0.01<") && svg.contains(">10000<"), "{svg}");
    }

    /// Callers are counted in digits, and the only line has the axis's name.
    #[test]
    fn small_sizes_are_digits_and_one_line_needs_no_legend() {
        let mut callers = chart(0..4, 1, |k, _| 10.0 * f64::from(k + 1));
        callers.series.truncate(1);
        let svg = callers.picture().unwrap().to_svg();
        assert!(svg.contains(">1<") && svg.contains(">8<") && !svg.contains("2^"), "{svg}");
        let with_legend = svg.matches("<text").count();
        callers.series[0].name.clone_from(&callers.y);
        let svg = callers.picture().unwrap().to_svg();
        assert_eq!(svg.matches("<text").count(), with_legend - 1, "{svg}");
    }

    #[test]
    fn one_size_makes_bars() {
        let svg = chart(20..21, 2, |_, i| 12.345 * (i + 1) as f64).picture().unwrap().to_svg();
        assert!(svg.contains(">12.3<") && svg.contains(">24.7<") && svg.contains("Gkey/s; keys 2^20"), "{svg}");
    }

    #[test]
    fn nothing_is_not_drawn() {
        assert!(Chart::default().picture().is_none());
        assert!(chart(3..5, 2, |_, _| f64::NAN).picture().is_none() && chart(3..5, 2, |_, _| 0.0).picture().is_none());
    }

    #[test]
    fn three_digits() {
        assert_eq!(
            [0.00123, 0.5, 9.999, 12.345, 123.4, 98765.4].map(digits),
            ["0.00123", "0.500", "10.00", "12.3", "123", "98765"]
        );
    }
}
