//! What `tidy` asks of manifests, so that each crate can be published.

use std::collections::BTreeMap;

/// Published crates say what they are; the lock file pins, and requirements do not.
pub(crate) fn check(files: &BTreeMap<String, String>) -> Vec<String> {
    let mut broken = Vec::new();
    let root = files.get("Cargo.toml").map_or("", String::as_str);
    let section = root.split("\n[").find_map(|part| part.strip_prefix("workspace.dependencies]\n")).unwrap_or("");
    let lines: Vec<&str> = section.lines().filter(|line| !line.starts_with('#') && line.contains('=')).collect();
    for line in &lines {
        let name = line.split(' ').next().unwrap_or("");
        if line.contains("\"=") {
            broken.push(format!(
                "Cargo.toml: {name} is pinned; Cargo.lock pins, see docs/decisions/0001-dependencies.md"
            ));
        }
    }
    for (path, text) in files {
        let Some(folder) = path.strip_suffix("/Cargo.toml").filter(|folder| folder.starts_with("crates/")) else {
            continue;
        };
        let private = text.contains("\npublish = false\n");
        let line = lines.iter().find(|line| line.contains(&format!("path = \"{folder}\"")));
        // The program is nobody's dependency.
        if line.is_some_and(|line| line.contains("version = ") == private) {
            let word = if private { "no " } else { "a " };
            broken.push(format!("Cargo.toml: {folder} needs {word}version beside its path"));
        }
        if !files.contains_key(&format!("{folder}/README.md")) {
            broken.push(format!("{folder}/README.md is missing"));
        }
        let keys = ["description", "repository", "readme", "keywords", "categories"];
        let keys = if private { &keys[..1] } else { &keys };
        for key in keys.iter().filter(|key| !text.contains(&format!("\n{key}"))) {
            broken.push(format!("{path}: has no {key}"));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(dependency: &str, manifest: &str) -> Vec<String> {
        let root = format!("[workspace]\n\n[workspace.dependencies]\n# a = \"=1\"\n{dependency}\n\n[profile.dev]\n");
        let files = [("Cargo.toml", root.as_str()), ("crates/a/Cargo.toml", manifest), ("crates/a/README.md", "")];
        check(&files.map(|(path, text)| (path.to_string(), text.to_string())).into())
    }

    #[test]
    fn what_cannot_be_published_is_found() {
        let full =
            "[package]\ndescription = 1\nrepository.workspace = true\nreadme = 1\nkeywords = 1\ncategories = 1\n";
        let private = "[package]\ndescription = 1\npublish = false\n";
        let (path, versioned) = ("a = { path = \"crates/a\" }", "a = { path = \"crates/a\", version = \"1\" }");
        assert_eq!(broken(versioned, full), [""; 0]);
        assert_eq!(broken(path, private), [""; 0]);
        for (dependency, manifest, expected) in [
            (path, full, "a version beside"),
            (versioned, private, "no version beside"),
            (versioned, &full.replace("keywords", "x"), "has no keywords"),
            ("b = \"=1.0\"", full, "b is pinned"),
        ] {
            let broken = broken(dependency, manifest);
            assert!(broken.len() == 1 && broken[0].contains(expected), "{broken:?}");
        }
        let mut files = BTreeMap::new();
        files.insert("crates/a/Cargo.toml".to_string(), full.to_string());
        assert!(check(&files)[0].contains("README"));
    }
}
