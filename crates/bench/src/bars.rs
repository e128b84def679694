//! Tables whose rows have bars beside them.

use tandem_console::report::table;
use tandem_fabric::topology::COLUMNS;

/// Characters of a bar at most, and at least for one to be worth its room.
const BAR: [usize; 2] = [16, 4];

/// A table as `report::table` makes it, each row with a bar as long as its value, as far as lines have room. Long names in the column `names` are cut.
pub(crate) fn table_with_bars(rows: &[Vec<String>], values: &[f64], names: usize) -> String {
    let wide = |rows: &[Vec<String>]| table(rows).lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let mut rows = rows.to_vec();
    let over = (wide(&rows) + 2 + BAR[1]).saturating_sub(COLUMNS);
    let longest = rows.iter().filter_map(|r| r.get(names)).map(|c| c.chars().count()).max().unwrap_or(0);
    let room = longest.saturating_sub(over).max(8);
    for cell in rows.iter_mut().filter_map(|r| r.get_mut(names)).filter(|c| c.chars().count() > room) {
        *cell = cell.chars().take(room - 2).chain("..".chars()).collect();
    }
    let most = COLUMNS.saturating_sub(wide(&rows) + 2).min(BAR[0]);
    let greatest = values.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    let width = wide(&rows);
    let lines = table(&rows);
    let mut out = String::new();
    for (i, line) in lines.lines().enumerate() {
        // The first row has the columns' names.
        let value = i.checked_sub(1).and_then(|i| values.get(i)).copied().unwrap_or(0.0);
        let length =
            if greatest > 0.0 && most >= BAR[1] { (value / greatest * most as f64).round() as usize } else { 0 };
        let bar = format!("{line:width$}  {}", "#".repeat(length.min(most)));
        out.push_str(bar.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_values_and_lines_fit() {
        let row = |name: &str, rate: &str| vec!["4 KiB".to_string(), name.into(), rate.into()];
        let rows = [row("library", "GB/s"), row("a", "10.0"), row("b", "5.0"), row("c", "-")];
        let bars = table_with_bars(&rows, &[10.0, 5.0, f64::NAN], 1);
        let count: Vec<usize> = bars.lines().map(|line| line.matches('#').count()).collect();
        assert_eq!(count, [0, 16, 8, 0], "{bars}");
        let long = [row("library", "GB/s"), row(&"x".repeat(200), "10.0"), row("b", "5.0")];
        let bars = table_with_bars(&long, &[10.0, 5.0], 1);
        assert!(
            bars.lines().all(|line| line.chars().count() <= 80) && bars.contains("xx..") && bars.contains("####"),
            "{bars}"
        );
    }
}
