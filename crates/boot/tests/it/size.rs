//! The promises that the bootstrap makes about itself.

use std::fs;
use std::path::Path;

#[test]
fn boo_1_the_bootstrap_has_less_than_500_lines() {
    let sources = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    let lines = sources.map(|source| {
        let path = source.unwrap().path();
        // A directory would hide lines, and so would another kind of file.
        assert_eq!(path.extension().unwrap(), "rs");
        fs::read_to_string(path).unwrap().lines().count()
    });
    let lines: usize = lines.sum();
    assert!((1..500).contains(&lines), "{lines} lines");
}

#[test]
fn boo_1_the_bootstrap_depends_on_nothing_but_the_standard_library() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    assert!(!manifest.contains("dependencies"), "{manifest}");
    assert!(!folder.join("build.rs").exists());
    for source in fs::read_dir(folder.join("src")).unwrap() {
        let text = fs::read_to_string(source.unwrap().path()).unwrap();
        for hidden in ["include!", "include_str!", "include_bytes!", "#[path", "unsafe", "extern "]
        {
            assert!(!text.contains(hidden), "`{hidden}` in {text}");
        }
    }
}
