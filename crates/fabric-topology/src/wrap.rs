//! Lines for terminals.

/// Characters of a line that every terminal shows.
pub const COLUMNS: usize = 80;

/// The text in lines of at most [`COLUMNS`] characters, broken at spaces; lines after the first are indented by so many. A word
/// that is longer stays whole.
pub fn wrapped(text: &str, indent: usize) -> String {
    let mut out = String::new();
    for (i, line) in text.split('\n').enumerate() {
        if i > 0 {
            out.push('\n');
        }
        let mut used = 0;
        // What a line begins with, and spaces between its words, stay.
        for word in line.split_inclusive(' ') {
            let seen = word.trim_end_matches(' ').chars().count();
            if used > indent && used + seen > COLUMNS && seen > 0 {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                used = indent;
            }
            out.push_str(word);
            used += word.chars().count();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces() {
        let text = format!("a  {}\n\nshort", "word ".repeat(40).trim_end());
        let lines: Vec<String> = wrapped(&text, 4).lines().map(String::from).collect();
        assert!(lines.iter().all(|l| l.chars().count() <= COLUMNS && *l == l.trim_end()), "{lines:?}");
        assert!(
            lines[0].starts_with("a  word") && lines[1].starts_with("    word") && lines[lines.len() - 1] == "short"
        );
        assert_eq!(lines.concat().matches("word").count(), 40);
        let long = "x".repeat(200);
        assert_eq!(wrapped(&long, 4), long);
        assert_eq!(wrapped(&format!("ab {long}"), 8), format!("ab {long}"));
        assert_eq!(wrapped("", 3), "");
    }
}
