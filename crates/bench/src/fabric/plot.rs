//! Rates over sizes as SVG.

use super::rows::Table;
use plotters::prelude::*;
use tandem_console::sizes;

const COLOURS: [RGBColor; 6] = [
    RGBColor(118, 185, 0),
    RGBColor(59, 125, 216),
    RGBColor(217, 72, 15),
    RGBColor(126, 87, 194),
    RGBColor(85, 85, 85),
    RGBColor(0, 150, 136),
];

/// The points of a library, by size.
fn series(table: &Table) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut out: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for row in &table.rows {
        let point = (row.bytes as f64, row.algbw());
        match out.iter_mut().find(|(library, _)| *library == row.library) {
            Some((_, points)) => points.push(point),
            None => out.push((row.library.clone(), vec![point])),
        }
    }
    out.iter_mut().for_each(|(_, points)| points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    out
}

/// A drawing of a table; in words why there is none.
pub(crate) fn svg(table: &Table, title: &str) -> Result<String, String> {
    let series = series(table);
    let points = || series.iter().flat_map(|(_, points)| points).filter(|p| p.1.is_finite());
    let low = points().map(|p| p.0).fold(f64::MAX, f64::min);
    let high = points().map(|p| p.0).fold(0.0, f64::max);
    let top = points().map(|p| p.1).fold(0.0, f64::max);
    if top <= 0.0 {
        return Err("there is nothing to draw".into());
    }
    // A single size still needs an axis with a length.
    let (low, high) = if low < high { (low, high) } else { (low / 2.0, high * 2.0) };
    let mut out = String::new();
    {
        let failed = |e: DrawingAreaErrorKind<std::io::Error>| e.to_string();
        let area = SVGBackend::with_string(&mut out, (860, 520)).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 20))
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(60)
            .build_cartesian_2d((low..high).log_scale().base(4.0), 0.0..top * 1.1)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .x_desc("size")
            .y_desc("algbw, GB/s")
            .x_label_formatter(&|x| sizes::write(*x as u64))
            .y_label_formatter(&|y| format!("{y:.0}"))
            .light_line_style(WHITE)
            .draw()
            .map_err(failed)?;
        for (i, (library, points)) in series.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            chart
                .draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)).point_size(3))
                .map_err(failed)?
                .label(library.as_str())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.9))
            .border_style(BLACK.mix(0.3))
            .draw()
            .map_err(failed)?;
        area.present().map_err(failed)?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::table;
    use super::*;

    #[test]
    fn a_drawing_has_every_library() {
        let text = svg(&table(), "allgather <two GPUs>").unwrap();
        assert!(text.starts_with("<svg ") && text.trim_end().ends_with("</svg>"));
        assert!(text.contains("tandem") && text.contains("NCCL 2.28.9") && text.contains("&lt;two GPUs&gt;"));
        assert!(text.matches("<polyline").count() >= 2, "{text}");
    }

    #[test]
    fn nothing_is_not_drawn() {
        let mut none = table();
        none.rows.clear();
        assert!(svg(&none, "x").is_err());
        let mut one = table();
        one.rows.truncate(1);
        assert!(svg(&one, "x").is_ok());
    }
}
