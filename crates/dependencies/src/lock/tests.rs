//! Lock files as managers write them, and what is read of them.

use super::*;

fn listed(manager: Manager, lock: &str, manifest: &str) -> Vec<String> {
    let packages = read_packages(manager, lock, manifest).unwrap();
    let line = |package: &ResolvedPackage| {
        let direct = if package.direct { "*" } else { "" };
        let scripts = if package.scripts { "!" } else { "" };
        format!("{}{direct}{scripts} {:?}", package.id(), package.origin)
    };
    packages.iter().map(line).collect()
}

#[test]
fn npm_lock_tells_packages_scripts_and_foreign_origins() {
    let lock = r#"{"lockfileVersion":3,"packages":{
        "":{"dependencies":{"a":"^1","g":"x"},"devDependencies":{"@s/b":"2"}},
        "node_modules/a":{"version":"1.2.0","resolved":"https://registry.npmjs.org/a/-/a-1.2.0.tgz","integrity":"sha512-x","license":"MIT"},
        "node_modules/@s/b":{"version":"2.0.0","integrity":"sha512-y","hasInstallScript":true,"dev":true},
        "node_modules/a/node_modules/c":{"version":"3.0.0","resolved":"https://evil.example/c.tgz","integrity":"sha512-z"},
        "node_modules/g":{"version":"1.0.0","resolved":"git+ssh://git@host/x.git#abc"},
        "node_modules/n":{"version":"1.0.0"},
        "node_modules/alias":{"name":"real","version":"1.0.0","integrity":"sha512-r"},
        "packages/w":{"version":"0.1.0","dependencies":{"a":"1"}},
        "node_modules/w":{"resolved":"packages/w","link":true}}}"#;
    assert_eq!(
        listed(Manager::Npm, lock, "{}"),
        [
            "@s/b@2.0.0*! Registry",
            "a@1.2.0* Host(\"registry.npmjs.org\")",
            "c@3.0.0 Host(\"evil.example\")",
            "g@1.0.0* Elsewhere(\"git+ssh://git@host/x.git#abc\")",
            "n@1.0.0 Elsewhere(\"no hash and no address\")",
            "real@1.0.0 Registry",
        ]
    );
    let old = r#"{"lockfileVersion":1,"dependencies":{}}"#;
    assert!(read_packages(Manager::Npm, old, "").unwrap_err().to_string().contains("npm 7"));
}

#[test]
fn pnpm_and_yarn_locks_are_read() {
    let lock = "lockfileVersion: '9.0'\nimporters:\n  .:\n    dependencies:\n      a:\n        specifier: ^1\n        version: 1.0.0\npackages:\n  a@1.0.0:\n    resolution: {integrity: sha512-x}\n  '@s/b@2.0.0':\n    resolution: {integrity: sha512-y, tarball: https://t.example/b.tgz}\n";
    assert_eq!(
        listed(Manager::Pnpm, lock, ""),
        ["@s/b@2.0.0 Host(\"t.example\")", "a@1.0.0* Registry"]
    );
    let lock = "# yarn lockfile v1\n\n\"@s/b@^2\", \"@s/b@^2.1\":\n  version \"2.1.0\"\n  resolved \"https://registry.yarnpkg.com/@s/b.tgz#abc\"\n  integrity sha512-x\n  dependencies:\n    version \"1\"\n\na@^1:\n  version \"1.0.0\"\n\n\"x@npm:real@1\":\n  version \"1.5.0\"\n";
    let manifest = r#"{"dependencies":{"a":"^1"}}"#;
    assert_eq!(
        listed(Manager::Yarn, lock, manifest),
        ["@s/b@2.1.0 Host(\"registry.yarnpkg.com\")", "a@1.0.0* Registry", "real@1.5.0 Registry"]
    );
    assert!(read_packages(Manager::Yarn, "__metadata:\n  version: 8\n", "").is_err());
}

#[test]
fn cargo_lock_tells_own_packages_from_foreign_ones() {
    let lock = "version = 4\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\ndependencies = [\"serde\", \"old 1.0.0\"]\n\
        [[package]]\nname = \"serde\"\nversion = \"1.0.1\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"ab\"\n\
        [[package]]\nname = \"old\"\nversion = \"2.0.0\"\nsource = \"sparse+https://own.example/index/\"\nchecksum = \"cd\"\n\
        [[package]]\nname = \"g\"\nversion = \"1.0.0\"\nsource = \"git+https://host/x#abc\"\n";
    assert_eq!(
        listed(Manager::Cargo, lock, ""),
        [
            "g@1.0.0 Elsewhere(\"git+https://host/x#abc\")",
            "old@2.0.0 Host(\"own.example\")",
            "serde@1.0.1* Registry"
        ]
    );
}

#[test]
fn python_locks_are_read() {
    let report = r#"{"version":"1","install":[
        {"metadata":{"name":"Flask","version":"3.0.0","license_expression":"BSD-3-Clause"},"requested":true,
         "download_info":{"url":"https://files.pythonhosted.org/flask.whl","archive_info":{"hashes":{"sha256":"ab"}}}},
        {"metadata":{"name":"old","version":"1.0","classifier":["License :: OSI Approved :: MIT License"]},
         "download_info":{"url":"https://files.pythonhosted.org/old.tar.gz","archive_info":{"hashes":{"sha256":"cd"}}}}]}"#;
    assert_eq!(
        listed(Manager::Pip, report, ""),
        [
            "Flask@3.0.0* Host(\"files.pythonhosted.org\")",
            "old@1.0! Host(\"files.pythonhosted.org\")"
        ]
    );
    let packages = read_packages(Manager::Pip, report, "").unwrap();
    assert_eq!(packages[1].licence.as_deref(), Some("MIT License"));
    assert_eq!(packages[0].integrity.as_deref(), Some("sha256:ab"));
    let uv = "version = 1\n[[package]]\nname = \"own\"\nversion = \"0\"\nsource = { virtual = \".\" }\ndependencies = [{ name = \"flask\" }]\n\
        [[package]]\nname = \"flask\"\nversion = \"3.0.0\"\nsource = { registry = \"https://pypi.org/simple\" }\n\
        wheels = [{ url = \"https://f/x.whl\", hash = \"sha256:ab\", upload-time = \"2024-01-01T00:00:00Z\" }]\n";
    assert_eq!(listed(Manager::Uv, uv, ""), ["flask@3.0.0* Host(\"pypi.org\")"]);
    assert!(read_packages(Manager::Uv, uv, "").unwrap()[0].published_ms.is_some());
    let poetry = "[[package]]\nname = \"flask\"\nversion = \"3.0.0\"\nfiles = [{file = \"a.whl\", hash = \"sha256:ab\"}]\n\
        [[package]]\nname = \"g\"\nversion = \"1\"\nfiles = []\n[package.source]\ntype = \"git\"\nurl = \"https://host/g\"\n";
    let manifest = "[tool.poetry.dependencies]\nFlask = \"*\"\n";
    assert_eq!(
        listed(Manager::Poetry, poetry, manifest),
        ["flask@3.0.0* Registry", "g@1! Elsewhere(\"https://host/g\")"]
    );
}

#[test]
fn go_sums_tell_modules_whose_code_is_used() {
    let sums = "github.com/a/b v1.0.0 h1:x=\ngithub.com/a/b v1.0.0/go.mod h1:y=\ngithub.com/c/d v0.1.0/go.mod h1:z=\n";
    let manifest = "module m\nrequire (\n\tgithub.com/a/b v1.0.0\n)\n";
    assert_eq!(listed(Manager::Go, sums, manifest), ["github.com/a/b@v1.0.0* Registry"]);
    assert!(read_packages(Manager::Go, "nonsense\n", "").is_err());
}

#[test]
fn facts_are_added_and_nonsense_is_left() {
    let mut packages = vec![ResolvedPackage::new("a", "1", PackageOrigin::Registry)];
    read_facts(&mut packages, b"{nonsense");
    read_facts(
        &mut packages,
        br#"{"a@1":{"licence":"MIT","published":"2024-01-01T00:00:00Z","scripts":true},"b@1":{}}"#,
    );
    assert_eq!(packages[0].licence.as_deref(), Some("MIT"));
    assert_eq!(packages[0].published_ms, Some(1_704_067_200_000));
    assert!(packages[0].scripts);
}

#[test]
fn no_bytes_make_a_reader_panic() {
    use proptest::prelude::*;
    proptest!(|(text in ".{0,200}", at in 0_usize..8)| {
        let _read = read_packages(Manager::ALL[at], &text, &text);
    });
}
