//! Pictures as PNG, for papers and pages that take no SVG: the shapes that an SVG has too, with a font of our own.

use crate::failure::{Failure, Outcome};
use tandem_fabric_topology::picture::{Anchor, Picture, Point, Shape, Stroke, Text};
use tiny_skia::{Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, StrokeDash, Transform};
use ttf_parser::{Face, OutlineBuilder};

/// DejaVu Sans, the characters of ASCII and a few more; its licence stands beside it.
const FONT: &[u8] = include_bytes!("font/plot.ttf");
/// Pixels of the file for each of the picture, so that it looks sharp on paper.
const SCALE: f32 = 2.0;
/// Pixels of a side at most.
const MOST: f64 = 8192.0;

/// The file's bytes.
pub(crate) fn png(picture: &Picture) -> Outcome<Vec<u8>> {
    let broken = || Failure::device("the picture cannot be drawn as PNG; give the file the suffix .svg");
    if picture.width.max(picture.height) * f64::from(SCALE) > MOST {
        return Err(Failure::input(format!(
            "a PNG of {:.0} x {:.0} is larger than {MOST:.0} pixels a side; give the file the suffix .svg",
            picture.width * f64::from(SCALE),
            picture.height * f64::from(SCALE)
        )));
    }
    let pixels = |x: f64| (x as f32 * SCALE).ceil().max(1.0) as u32;
    let mut map = Pixmap::new(pixels(picture.width), pixels(picture.height)).ok_or_else(broken)?;
    map.fill(Color::WHITE);
    let face = Face::parse(FONT, 0).map_err(|_| broken())?;
    for shape in &picture.shapes {
        match shape {
            Shape::Line(points, stroke) => draw_line(&mut map, lines(points, false), stroke),
            Shape::Area(points, fill) => draw_area(&mut map, lines(points, true), fill),
            Shape::Box { at, size, radius, fill, border } => {
                let path = rounded(*at, *size, *radius);
                draw_area(&mut map, path.clone(), fill);
                draw_line(&mut map, path, border);
            }
            Shape::Text(text) => draw_area(&mut map, written(&face, text), text.colour),
        }
    }
    // All pixels are opaque, so that colours are the same with and without their alpha multiplied in.
    Ok(encoded(map.width(), map.height(), map.pixels().iter().flat_map(|p| [p.red(), p.green(), p.blue()]).collect()))
}

fn paint(colour: &str) -> Paint<'static> {
    let part = |at: usize| colour.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok()).unwrap_or(0);
    let mut paint = Paint::default();
    paint.set_color_rgba8(part(1), part(3), part(5), 255);
    paint
}

fn draw_line(map: &mut Pixmap, path: Option<Path>, stroke: &Stroke) {
    let Some(path) = path.filter(|_| stroke.width > 0.0) else { return };
    let stroked = tiny_skia::Stroke {
        width: stroke.width as f32,
        line_cap: LineCap::Butt,
        line_join: LineJoin::Miter,
        dash: StrokeDash::new(vec![5.0, 3.0], 0.0).filter(|_| stroke.is_dashed),
        ..tiny_skia::Stroke::default()
    };
    map.stroke_path(&path, &paint(stroke.colour), &stroked, Transform::from_scale(SCALE, SCALE), None);
}

fn draw_area(map: &mut Pixmap, path: Option<Path>, fill: &str) {
    if let Some(path) = path {
        map.fill_path(&path, &paint(fill), FillRule::Winding, Transform::from_scale(SCALE, SCALE), None);
    }
}

fn lines(points: &[Point], is_closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (i, &(x, y)) in points.iter().enumerate() {
        match i {
            0 => path.move_to(x as f32, y as f32),
            _ => path.line_to(x as f32, y as f32),
        }
    }
    if is_closed {
        path.close();
    }
    path.finish()
}

fn rounded(at: Point, size: Point, radius: f64) -> Option<Path> {
    let r = radius.min(size.0 / 2.0).min(size.1 / 2.0) as f32;
    let (left, top, right, bottom) = (at.0 as f32, at.1 as f32, (at.0 + size.0) as f32, (at.1 + size.1) as f32);
    // A quarter of a circle as a cubic curve.
    let k = r * 0.447_715;
    let mut p = PathBuilder::new();
    p.move_to(left + r, top);
    p.line_to(right - r, top);
    p.cubic_to(right - k, top, right, top + k, right, top + r);
    p.line_to(right, bottom - r);
    p.cubic_to(right, bottom - k, right - k, bottom, right - r, bottom);
    p.line_to(left + r, bottom);
    p.cubic_to(left + k, bottom, left, bottom - k, left, bottom - r);
    p.line_to(left, top + r);
    p.cubic_to(left, top + k, left + k, top, left + r, top);
    p.close();
    p.finish()
}

/// Outlines of letters, put where they belong.
struct Letters {
    path: PathBuilder,
    at: Point,
    /// Pixels from the text's beginning to the letter's.
    along: f32,
    scale: f32,
    is_upright: bool,
}

impl Letters {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        let (x, y) = (self.along + x * self.scale, y * self.scale);
        let (left, top) = (self.at.0 as f32, self.at.1 as f32);
        match self.is_upright {
            false => (left + x, top - y),
            true => (left - y, top - x),
        }
    }
}

impl OutlineBuilder for Letters {
    fn move_to(&mut self, x: f32, y: f32) {
        let p = self.place(x, y);
        self.path.move_to(p.0, p.1);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        let p = self.place(x, y);
        self.path.line_to(p.0, p.1);
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let (a, p) = (self.place(x1, y1), self.place(x, y));
        self.path.quad_to(a.0, a.1, p.0, p.1);
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let (a, b, p) = (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        self.path.cubic_to(a.0, a.1, b.0, b.1, p.0, p.1);
    }
    fn close(&mut self) {
        self.path.close();
    }
}

/// What the font does not have is a question mark.
fn written(face: &Face<'_>, text: &Text) -> Option<Path> {
    let scale = text.size as f32 / f32::from(face.units_per_em());
    let glyphs: Vec<_> =
        text.text.chars().filter_map(|c| face.glyph_index(c).or_else(|| face.glyph_index('?'))).collect();
    let advance = |g| f32::from(face.glyph_hor_advance(g).unwrap_or(0)) * scale;
    let width: f32 = glyphs.iter().map(|g| advance(*g)).sum();
    let along = match text.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => -width / 2.0,
        Anchor::End => -width,
    };
    let mut letters = Letters { path: PathBuilder::new(), at: text.at, along, scale, is_upright: text.is_upright };
    for glyph in glyphs {
        face.outline_glyph(glyph, &mut letters);
        letters.along += advance(glyph);
    }
    letters.path.finish()
}

/// A PNG of red, green and blue, row by row.
fn encoded(width: u32, height: u32, rgb: Vec<u8>) -> Vec<u8> {
    let rows = rgb.chunks_exact(3 * width as usize).flat_map(|row| std::iter::once(&0).chain(row)).copied();
    let data = miniz_oxide::deflate::compress_to_vec_zlib(&rows.collect::<Vec<u8>>(), 7);
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    // 8 bits a colour, no alpha, and what there is but one of.
    header.extend([8, 2, 0, 0, 0]);
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, bytes) in [(b"IHDR", &header), (b"IDAT", &data), (b"IEND", &Vec::new())] {
        out.extend((bytes.len() as u32).to_be_bytes());
        let from = out.len();
        out.extend(kind);
        out.extend(bytes);
        out.extend(crc(&out[from..]).to_be_bytes());
    }
    out
}

/// The sum of PNG's pieces.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |s: u32, _| if s & 1 == 1 { 0xedb8_8320 ^ (s >> 1) } else { s >> 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Width, height and pixels of a file.
    fn decoded(png: &[u8]) -> (usize, usize, Vec<[u8; 3]>) {
        assert_eq!(&png[..16], b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
        // The end of every PNG.
        assert_eq!(&png[png.len() - 12..], b"\0\0\0\0IEND\xae\x42\x60\x82");
        let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()) as usize;
        let (width, height, length) = (number(16), number(20), number(33));
        let rows = miniz_oxide::inflate::decompress_to_vec_zlib(&png[41..41 + length]).unwrap();
        let pixels =
            rows.chunks_exact(1 + 3 * width).flat_map(|row| row[1..].chunks_exact(3).map(|p| [p[0], p[1], p[2]]));
        (width, height, pixels.collect())
    }

    #[test]
    fn shapes_are_where_they_belong() {
        let mut picture = Picture::new(40.0, 20.0);
        picture.line(&[(0.0, 5.0), (20.0, 5.0)], Stroke::new("#ff0000", 2.0));
        picture.block((30.0, 10.0), (8.0, 8.0), 0.0, "#00ff00", Stroke::new("#00ff00", 1.0));
        picture.text(Text::new((2.0, 18.0), 10.0, "HHH").coloured("#0000ff"));
        let (width, height, pixels) = decoded(&png(&picture).ok().unwrap());
        assert_eq!((width, height, pixels.len()), (80, 40, 3200));
        let at = |x: usize, y: usize| pixels[y * width + x];
        assert_eq!([at(20, 10), at(60, 20), at(0, 39), at(50, 10)], [[255, 0, 0], [0, 255, 0], [255; 3], [255; 3]]);
        let is_blue = |p: &[u8; 3]| p[2] == 255 && p[0] < 128;
        let blue: Vec<usize> = (0..pixels.len()).filter(|&i| is_blue(&pixels[i])).map(|i| i % width).collect();
        assert!(blue.len() > 60 && blue.iter().all(|x| (4..52).contains(x)), "{blue:?}");
    }

    #[test]
    fn what_is_too_large_is_refused() {
        assert!(png(&Picture::new(5000.0, 10.0)).is_err());
    }
}
