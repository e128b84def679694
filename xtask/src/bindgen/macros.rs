//! Expands the macros of a header that declare functions which differ in their names alone.
//!
//! A macro has parameters and a body of declarations or of other macros, in which `##` joins words. It is used where a declaration may
//! stand, on a line of its own. What it declares stands on that line, so that lines keep their numbers.

struct Macro {
    name: String,
    parameters: Vec<String>,
    body: String,
}

/// How deep macros may use each other; a macro that uses itself goes deeper.
const MOST_DEPTH: usize = 8;

/// The header without macros; an error begins with its line.
pub(super) fn expand(text: &str) -> Result<String, String> {
    let mut macros: Vec<Macro> = Vec::new();
    let mut out = String::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let number = index + 1;
        match definition(line) {
            None => out.push_str(&expanded(line, &macros, MOST_DEPTH).map_err(|what| format!("{number}: {what}"))?),
            Some((name, parameters, first)) => {
                let mut body = String::new();
                let mut part = first;
                while let Some(more) = part.strip_suffix('\\') {
                    body.push_str(more);
                    out.push('\n');
                    part = lines.next().map_or("", |(_, line)| line.trim());
                }
                body.push_str(part);
                if !body.trim_end().ends_with(')') {
                    return Err(format!("{number}: {line:?} is not read: a macro's body is declarations"));
                }
                macros.push(Macro { name, parameters, body });
            }
        }
        out.push('\n');
    }
    Ok(out)
}

/// The name, the parameters and the first line of the body of the macro that `line` defines.
fn definition(line: &str) -> Option<(String, Vec<String>, &str)> {
    let (name, rest) = line.trim().strip_prefix("#define ")?.split_once('(')?;
    let (parameters, body) = rest.split_once(')')?;
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| (name.into(), list(parameters), body.trim()))
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(|item| item.trim().to_string()).collect()
}

/// What `text` declares once all macros that it uses are expanded.
fn expanded(text: &str, macros: &[Macro], depth: usize) -> Result<String, String> {
    let used = |statement: &str| {
        let (name, rest) = statement.trim().split_once('(')?;
        let found = macros.iter().find(|m| m.name == name)?;
        Some((found, list(rest.strip_suffix(')')?)))
    };
    let code = text.split("//").next().unwrap_or("");
    if !code.split(';').any(|statement| used(statement).is_some()) {
        return Ok(text.into());
    }
    let mut out = String::new();
    for statement in code.split(';').filter(|statement| !statement.trim().is_empty()) {
        let Some((found, arguments)) = used(statement) else {
            out.push_str(&format!("{statement};"));
            continue;
        };
        if arguments.len() != found.parameters.len() {
            return Err(format!("{} takes {} arguments", found.name, found.parameters.len()));
        }
        let Some(depth) = depth.checked_sub(1) else { return Err(format!("{} uses itself", found.name)) };
        out.push_str(&expanded(&format!("{};", substituted(found, &arguments)), macros, depth)?);
    }
    Ok(out)
}

/// A macro's body with arguments for parameters.
fn substituted(found: &Macro, arguments: &[String]) -> String {
    let mut out = String::new();
    let mut rest = found.body.as_str();
    while let Some(first) = rest.chars().next() {
        let end =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len()).max(first.len_utf8());
        let word = &rest[..end];
        let place = found.parameters.iter().position(|parameter| parameter == word);
        out.push_str(place.map_or(word, |i| &arguments[i]));
        rest = &rest[end..];
    }
    out.replace("##", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_declare_what_the_preprocessor_makes_of_them() {
        let text = "#define ONE(name, type) int32_t name(const type* args)\n\
                    #define BOTH(what, name, type) \\\n    what(name##_a, type); \\\n    what(name##_b, type)\n\
                    int32_t f(int32_t x); // as ever\n    BOTH(ONE, g, t);\nONE(h, u);";
        let expected = "\n\n\n\nint32_t f(int32_t x); // as ever\n\
                        int32_t g_a(const t* args);int32_t g_b(const t* args);\nint32_t h(const u* args);\n";
        let lines =
            |text: &str| text.lines().map(|line| line.replace("; ", ";").trim().to_string()).collect::<Vec<_>>();
        assert_eq!(lines(&expand(text).unwrap()), lines(expected));
    }

    #[test]
    fn refuses_what_is_no_declaration() {
        for (text, expected) in [
            ("\n#define TWICE(x) 2", "2: "),
            ("#define F(a, b) int32_t a(b c)\n\nF(x);", "3: F takes 2 arguments"),
            ("#define F(a) F(a)\nF(x);", "2: F uses itself"),
        ] {
            let error = expand(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        // Constants are none.
        assert_eq!(expand("#define A 3\n").unwrap(), "#define A 3\n");
    }
}
