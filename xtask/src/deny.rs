//! `cargo xtask deny`: every package that comes with Tandem, on any platform, has a licence, a source and a name that deny.toml
//! allows.

use std::path::Path;
use std::process::Command;

/// The workspaces whose packages users get.
const WORKSPACES: [&str; 4] = [".", "integrations/python", "integrations/nccl", "integrations/c"];

/// Reports every package that is not allowed.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let read = |name: &str| std::fs::read_to_string(root.join(name)).map_err(|e| format!("{name}: {e}"));
    let rules = Rules::parse(&read("deny.toml")?)?;
    let mut broken = Vec::new();
    for workspace in WORKSPACES {
        let args =
            ["tree", "--workspace", "--locked", "--target", "all", "--edges", "normal,build,dev", "--prefix", "none"];
        let mut command = Command::new("cargo");
        command.args(args).args(["--no-dedupe", "--format", "{p}\t{l}"]).current_dir(root.join(workspace));
        let output = command.output().map_err(|e| format!("{workspace}: cargo tree: {e}"))?;
        if !output.status.success() {
            return Err(format!("{workspace}: {}", String::from_utf8_lossy(&output.stderr)));
        }
        broken.extend(rules.packages(&String::from_utf8_lossy(&output.stdout)));
        broken.extend(rules.sources(&read(&format!("{workspace}/Cargo.lock"))?));
    }
    if broken.is_empty() {
        return Ok(());
    }
    Err(broken.join("\n"))
}

/// What deny.toml allows and denies.
struct Rules {
    licences: Vec<String>,
    registries: Vec<String>,
    banned: Vec<String>,
}

impl Rules {
    fn parse(text: &str) -> Result<Self, String> {
        let list = |section: &str, key: &str| {
            let inside = text.split("\n[").find_map(|part| part.strip_prefix(&format!("{section}]\n")));
            let value = inside.and_then(|part| part.lines().find_map(|line| line.strip_prefix(&format!("{key} = ["))));
            let value = value.and_then(|value| value.strip_suffix(']'));
            let value = value.ok_or(format!("deny.toml: expected {key} = [\"...\"] on one line under [{section}]"))?;
            Ok::<_, String>(value.split('"').skip(1).step_by(2).map(String::from).collect())
        };
        Ok(Self {
            licences: list("licenses", "allow")?,
            registries: list("sources", "allow-registry")?,
            banned: list("bans", "deny")?,
        })
    }

    /// Of lines of `name version (path)`, a tab and an expression of licences.
    fn packages(&self, tree: &str) -> Vec<String> {
        let mut lines: Vec<&str> = tree.lines().filter(|line| !line.is_empty()).collect();
        lines.sort_unstable();
        lines.dedup();
        let mut broken = Vec::new();
        if lines.is_empty() {
            broken.push("cargo tree named no package".into());
        }
        for line in lines {
            let (package, licence) = line.split_once('\t').unwrap_or((line, ""));
            // Cargo's mark of a package whose dependencies lead back to it.
            let licence = licence.trim_end_matches(" (*)");
            if !self.allows(licence) {
                broken.push(format!("{package}: deny.toml does not allow its licence, {licence:?}"));
            }
            if self.banned.iter().any(|name| package.split(' ').next() == Some(name)) {
                broken.push(format!("{package}: deny.toml bans it"));
            }
        }
        broken
    }

    /// Of a lock file.
    fn sources(&self, lock: &str) -> Vec<String> {
        let source = |line: &str| line.strip_prefix("source = \"").map(|rest| rest.trim_end_matches('"').to_string());
        let mut unknown: Vec<String> = lock.lines().filter_map(source).collect();
        unknown.retain(|source| !self.registries.iter().any(|known| *source == format!("registry+{known}")));
        unknown.dedup();
        unknown
            .into_iter()
            .map(|source| format!("Cargo.lock: deny.toml does not allow packages from {source}"))
            .collect()
    }

    /// Whether an SPDX expression, in which older packages write `/` for `OR`, can be met with what is allowed.
    fn allows(&self, expression: &str) -> bool {
        let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        let mut words = spaced.split_whitespace().peekable();
        let allowed = self.any(&mut words);
        allowed && words.next().is_none()
    }

    fn any<'a>(&self, words: &mut Words<'a>) -> bool {
        let mut met = self.all(words);
        while words.next_if_eq(&"OR").is_some() {
            met |= self.all(words);
        }
        met
    }

    fn all<'a>(&self, words: &mut Words<'a>) -> bool {
        let mut met = self.one(words);
        while words.next_if_eq(&"AND").is_some() {
            met &= self.one(words);
        }
        met
    }

    fn one<'a>(&self, words: &mut Words<'a>) -> bool {
        let Some(word) = words.next() else { return false };
        if word == "(" {
            let met = self.any(words);
            return words.next() == Some(")") && met;
        }
        let mut licence = word.to_string();
        // A licence with an exception has to be allowed by this name.
        if words.next_if_eq(&"WITH").is_some() {
            licence = format!("{word} WITH {}", words.next().unwrap_or(""));
        }
        self.licences.contains(&licence)
    }
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        let text =
            "# x\n\n[licenses]\nallow = [\"MIT\", \"Zlib\", \"A WITH b\"]\n\n[bans]\ndeny = [\"cmake\"]\n\n[sources]\n\
                    allow-registry = [\"https://a\"]\n";
        Rules::parse(text).unwrap()
    }

    #[test]
    fn licences_are_expressions() {
        for fine in
            ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "Zlib AND (GPL-3.0 OR MIT)", "GPL-3.0 WITH x OR MIT", "A WITH b"]
        {
            assert!(rules().allows(fine), "{fine}");
        }
        for wrong in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "MIT WITH x",
            "A",
            "A WITH c",
            "A WITH",
            "(MIT",
            "MIT MIT",
            "Zlib AND (GPL-3.0 OR BSD)",
        ] {
            assert!(!rules().allows(wrong), "{wrong}");
        }
    }

    #[test]
    fn what_is_not_allowed_is_named() {
        assert!(rules().packages("a 1.0.0 (/x)\tMIT\n\nb 2.0.0\tMIT/GPL-3.0\n").is_empty());
        let broken = rules().packages("a 1.0.0\tGPL-3.0\ncmake 1.0.0\tMIT\nc 1.0.0\t\n");
        assert_eq!(broken.len(), 3, "{broken:?}");
        assert_eq!(rules().packages("\n").len(), 1);
        let lock = "source = \"registry+https://a\"\nsource = \"registry+https://b\"\nsource = \"git+https://a\"\n";
        assert_eq!(rules().sources(lock).len(), 2);
        assert!(Rules::parse("[licenses]\nallow = [\n\"MIT\"]\n").is_err());
    }
}
