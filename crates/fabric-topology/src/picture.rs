//! Pictures of lines, boxes and text, and SVG of them: the one place that knows how text is escaped, how wide it is, and
//! which colours go together.
//!
//! A [`Picture`] is a list of shapes in drawing order, in pixels from the upper left corner. It holds no more than other
//! writers can draw too.

use super::escaped;
use std::fmt::Write;

/// A point: to the right, and down.
pub type Point = (f64, f64);

/// Colours that people with any kind of colour blindness tell apart on white (after Okabe and Ito, and Tol).
pub const PALETTE: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#332288", "#882255"];
/// Text and borders.
pub const INK: &str = "#222222";
/// Text of less weight.
pub const GREY: &str = "#555555";
/// Lines in the background.
pub const FAINT: &str = "#cfcfcf";

/// How a line is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Stroke {
    /// `#rrggbb`.
    pub colour: &'static str,
    /// Pixels.
    pub width: f64,
    /// Whether it is broken.
    pub is_dashed: bool,
}

impl Stroke {
    /// An unbroken line.
    pub fn new(colour: &'static str, width: f64) -> Self {
        Self { colour, width, is_dashed: false }
    }

    /// A broken line.
    pub fn dashed(colour: &'static str, width: f64) -> Self {
        Self { colour, width, is_dashed: true }
    }
}

/// Which part of a text stands at its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// Its left end.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

/// A line of text.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// The anchor's place, on the base line.
    pub at: Point,
    /// Which part of the text stands there.
    pub anchor: Anchor,
    /// Pixels of the font.
    pub size: f64,
    /// `#rrggbb`.
    pub colour: &'static str,
    /// Whether it is read from below to above.
    pub is_upright: bool,
    /// What it says; not escaped.
    pub text: String,
}

/// What a picture is made of.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Straight lines through points.
    Line(Vec<Point>, Stroke),
    /// An area within straight lines, without a border.
    Area(Vec<Point>, &'static str),
    /// A box: its upper left corner, its width and height, the radius of its corners, colours of the inside and the border.
    Box {
        /// The upper left corner.
        at: Point,
        /// Width and height.
        size: Point,
        /// Of its corners.
        radius: f64,
        /// The colour inside.
        fill: &'static str,
        /// The border.
        border: Stroke,
    },
    /// A line of text.
    Text(Text),
}

/// Shapes on a white ground.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// Pixels.
    pub width: f64,
    /// Pixels.
    pub height: f64,
    /// In drawing order.
    pub shapes: Vec<Shape>,
}

/// How wide a text may become at most in the usual fonts without serifs, in pixels.
pub fn text_width(text: &str, size: f64) -> f64 {
    let width = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' | '(' | ')' | '/' | 'f' | 't' | '-' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '>' | '+' | '=' => 0.95,
        c if c.is_ascii_uppercase() => 0.76,
        c if c.is_ascii() => 0.64,
        _ => 1.0,
    };
    // A font may have all characters of one width.
    text.chars().map(width).sum::<f64>().max(0.61 * text.chars().count() as f64) * size
}

/// The text, or as much of its beginning as is no wider, with three dots.
pub fn fitting(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_string();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if text_width(&kept, size) + text_width("...", size) > width {
            kept.pop();
            break;
        }
    }
    kept + "..."
}

impl Text {
    /// Dark text from its left end.
    pub fn new(at: Point, size: f64, text: impl Into<String>) -> Self {
        Self { at, anchor: Anchor::Start, size, colour: INK, is_upright: false, text: text.into() }
    }

    /// This text with `at` at another part of it.
    pub fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    /// This text in another colour.
    pub fn coloured(self, colour: &'static str) -> Self {
        Self { colour, ..self }
    }

    /// The box that it takes up at most: left, top, right, bottom.
    pub fn bounds(&self) -> [f64; 4] {
        let width = text_width(&self.text, self.size);
        let from = match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -width / 2.0,
            Anchor::End => -width,
        };
        let (x, y) = self.at;
        let (above, below) = (0.95 * self.size, 0.25 * self.size);
        match self.is_upright {
            false => [x + from, y - above, x + from + width, y + below],
            true => [x - above, y - from - width, x + below, y - from],
        }
    }
}

/// Whether two boxes (left, top, right, bottom) share anything.
pub fn overlap(a: [f64; 4], b: [f64; 4]) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

impl Picture {
    /// An empty one.
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, shapes: Vec::new() }
    }

    /// Adds a line through points.
    pub fn line(&mut self, points: &[Point], stroke: Stroke) {
        self.shapes.push(Shape::Line(points.to_vec(), stroke));
    }

    /// Adds a text.
    pub fn text(&mut self, text: Text) {
        self.shapes.push(Shape::Text(text));
    }

    /// Adds a box around a middle.
    pub fn block(&mut self, middle: Point, size: Point, radius: f64, fill: &'static str, border: Stroke) {
        let at = (middle.0 - size.0 / 2.0, middle.1 - size.1 / 2.0);
        self.shapes.push(Shape::Box { at, size, radius, fill, border });
    }

    /// Adds the head of an arrow: its tip, and where it comes from.
    pub fn arrowhead(&mut self, from: Point, tip: Point, size: f64, colour: &'static str) {
        let (dx, dy) = (tip.0 - from.0, tip.1 - from.1);
        let length = dx.hypot(dy).max(1e-9);
        let (ux, uy) = (dx / length, dy / length);
        let side = |s: f64| (tip.0 - size * ux - s * 0.5 * size * uy, tip.1 - size * uy + s * 0.5 * size * ux);
        self.shapes.push(Shape::Area(vec![tip, side(1.0), side(-1.0)], colour));
    }

    /// As SVG, which scales to the width that it is given. Equal pictures give equal texts.
    pub fn to_svg(&self) -> String {
        let (width, height) = (number(self.width), number(self.height));
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"DejaVu Sans, Verdana, Helvetica, sans-serif\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        for shape in &self.shapes {
            let _ = match shape {
                Shape::Line(points, s) => {
                    let dash = if s.is_dashed { " stroke-dasharray=\"5 3\"" } else { "" };
                    let (points, width) = (list(points), number(s.width));
                    writeln!(
                        out,
                        "<polyline points=\"{points}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\"{dash}/>",
                        s.colour
                    )
                }
                Shape::Area(points, fill) => writeln!(out, "<polygon points=\"{}\" fill=\"{fill}\"/>", list(points)),
                Shape::Box { at, size, radius, fill, border } => {
                    let [x, y, w, h, r, b] = [at.0, at.1, size.0, size.1, *radius, border.width].map(number);
                    let dash = if border.is_dashed { " stroke-dasharray=\"5 3\"" } else { "" };
                    writeln!(
                        out,
                        "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" rx=\"{r}\" fill=\"{fill}\" \
                         stroke=\"{}\" stroke-width=\"{b}\"{dash}/>",
                        border.colour
                    )
                }
                Shape::Text(text) => writeln!(out, "{}", svg_text(text)),
            };
        }
        out + "</svg>\n"
    }
}

fn svg_text(text: &Text) -> String {
    let [x, y, size] = [text.at.0, text.at.1, text.size].map(number);
    let anchor = match text.anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let turned = if text.is_upright { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
    let (colour, words) = (text.colour, escaped(&text.text));
    format!("<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{anchor} fill=\"{colour}\"{turned}>{words}</text>")
}

fn list(points: &[Point]) -> String {
    points.iter().map(|p| format!("{},{}", number(p.0), number(p.1))).collect::<Vec<_>>().join(" ")
}

/// A tenth of a pixel is fine enough.
fn number(x: f64) -> String {
    let tenths = (x * 10.0).round() as i64;
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        _ => format!("{}{}.{}", if tenths < 0 { "-" } else { "" }, tenths.abs() / 10, tenths.abs() % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, -0.04, 12.0, -0.25, 3.1234, -7.96].map(number), ["0", "0", "12", "-0.3", "3.1", "-8"]);
    }

    #[test]
    fn text_is_escaped_and_shortened() {
        let mut picture = Picture::new(100.0, 50.0);
        picture.text(Text::new((1.0, 2.0), 10.0, "a<b & \"c\""));
        assert!(picture.to_svg().contains(">a&lt;b &amp; &quot;c&quot;</text>"));
        let long = "W".repeat(99);
        let short = fitting(&long, 10.0, 100.0);
        assert!(short.ends_with("...") && text_width(&short, 10.0) <= 100.0, "{short}");
        assert_eq!(fitting("GPU0", 10.0, 100.0), "GPU0");
    }
}
