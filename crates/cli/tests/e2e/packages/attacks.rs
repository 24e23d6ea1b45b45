//! Packages, registries and projects that attack whoever installs.

use serde_json::json;

use super::registry::{Shopper, install, shell};
use crate::task::lab::run_tests;

#[test]
fn attack_install_script_does_not_run_unless_the_policy_names_it() {
    let shopper = Shopper::new();
    let run = shopper.run(
        &["--yes"],
        &[
            install(json!({"add": ["evil-script"], "manager": "npm"})),
            shell("ls", &["-a", "node_modules/evil-script"]),
        ],
    );
    let review = run.all("review.requested")[0]["reasons"].to_string();
    assert!(review.contains("its install script does not run"), "{review}");
    assert!(!shopper.user.project.path("owned").exists());
    assert_eq!(run.all("dependency.installed").len(), 1, "{}", run.told());
}

#[test]
fn attack_install_script_that_may_run_sees_no_network_no_home_and_no_project() {
    let shopper = Shopper::new();
    let policy =
        fluffy_policy::DEFAULT_POLICY.replace("  scripts: []\n", "  scripts: [evil-script]\n");
    shopper.user.write(".fluffy/policy.yaml", &policy);
    shopper.user.write("secret.txt", "a secret of the project");
    let run =
        shopper.run(&["--yes"], &[install(json!({"add": ["evil-script"], "manager": "npm"}))]);
    assert!(!shopper.user.project.path("owned").exists(), "{}", run.told());
    let everything = shopper.everything();
    let stolen = super::registry::TOKEN.as_bytes();
    assert!(!everything.windows(stolen.len()).any(|part| part == stolen));
}

#[test]
fn attack_lookalike_is_not_installed_by_a_standing_yes() {
    let shopper = Shopper::new();
    let run = shopper.run(&["--yes"], &[install(json!({"add": ["expres"], "manager": "npm"}))]);
    assert!(run.all("dependency.installed").is_empty(), "{}", run.told());
    assert!(!shopper.root().join("node_modules").exists());
}

#[test]
fn attack_archive_with_links_and_parents_stays_in_its_folder() {
    let shopper = Shopper::new();
    let run =
        shopper.run(&["--yes"], &[install(json!({"add": ["evil-archive"], "manager": "npm"}))]);
    let outside = ["outside.txt", "node_modules/outside.txt", "../outside.txt"];
    for name in outside {
        assert!(!shopper.root().join(name).exists(), "{name}: {}", run.told());
    }
    let link = shopper.root().join("node_modules/evil-archive/link");
    assert!(std::fs::symlink_metadata(link).is_err(), "{}", run.told());
}

#[test]
fn attack_archive_of_another_hash_is_not_installed() {
    let shopper = Shopper::new();
    shopper
        .run(&["--yes"], &[install(json!({"add": ["greeter@1.0.0"], "manager": "npm"}))])
        .assert_done();
    let key = shopper.user.run(&["env", "list", "--json"]).json_lines()[0]["key"]
        .as_str()
        .unwrap()
        .to_owned();
    // A kernel that still ends uses it.
    shopper.user.run(&["kernel", "stop"]);
    let removed = shopper.user.run(&["env", "rm", &key]);
    assert_eq!(removed.code, 0, "{}", removed.err);
    shopper.registry.swap("greeter-1.0.0.tgz", b"something else");
    let run = shopper.run(&["--yes"], &[install(json!({}))]);
    assert!(run.all("dependency.installed").is_empty(), "{}", run.told());
    let reason = run.answers("deps.install")[0]["reason"].to_string();
    assert!(reason.contains("EINTEGRITY") || reason.contains("TAR_BAD_ARCHIVE"), "{reason}");
}

#[test]
fn attack_lock_file_with_another_hash_or_origin_is_refused() {
    let shopper = Shopper::new();
    shopper
        .run(&["--yes"], &[install(json!({"add": ["greeter@1.0.0"], "manager": "npm"}))])
        .assert_done();
    let lock = shopper.user.read("package-lock.json");
    let integrity =
        lock.split("\"integrity\": \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let forged = lock.replace(&integrity, "sha512-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==");
    shopper.user.write("package-lock.json", &forged);
    let run = shopper.run(&["--yes"], &[install(json!({}))]);
    assert!(run.all("dependency.installed").is_empty(), "{}", run.told());
    let resolved = "https://evil.example/greeter-1.0.0.tgz";
    let mut elsewhere: serde_json::Value = serde_json::from_str(&lock).unwrap();
    elsewhere["packages"]["node_modules/greeter"]["resolved"] = json!(resolved);
    shopper.user.write("package-lock.json", &elsewhere.to_string());
    let run = shopper.run(&["--yes"], &[install(json!({}))]);
    assert!(run.all("dependency.installed").is_empty(), "{}", run.told());
    let reason = run.answers("deps.install")[0]["reason"].to_string();
    assert!(reason.contains("evil.example"), "{reason}");
}

#[test]
fn attack_settings_of_the_project_name_no_registry() {
    let shopper = Shopper::new();
    shopper.user.write(".npmrc", "registry=http://127.0.0.1:9/\nignore-scripts=false\n");
    let run = shopper.run(&["--yes"], &[install(json!({"add": ["greeter"], "manager": "npm"}))]);
    assert_eq!(run.all("dependency.installed").len(), 1, "{}", run.told());
    assert!(shopper.registry.log().contains("/greeter"));
}

#[test]
fn attack_package_takes_no_runners_place() {
    let shopper = Shopper::new();
    shopper.user.write("package.json", "{\"name\":\"p\",\"scripts\":{}}\n");
    shopper
        .user
        .write("a.test.js", "require('node:test')('fails', () => { throw new Error('red'); });\n");
    let run = shopper.run(
        &["--yes"],
        &[install(json!({"add": ["runner-changer"]})), run_tests(), shell("node", &["--version"])],
    );
    assert_eq!(run.all("dependency.installed").len(), 1, "{}", run.told());
    assert_eq!(run.all("tests.finished")[0]["failed"], 1, "{}", run.told());
}

#[test]
fn attack_module_of_an_unknown_host_is_not_looked_up() {
    let shopper = Shopper::new();
    let module = "secret-of-the-project.evil.example/x";
    let run = shopper.run(&["--yes"], &[install(json!({"add": [module], "manager": "go"}))]);
    let reason = run.answers("deps.install")[0]["reason"].to_string();
    assert!(reason.contains("is not looked up"), "{}", run.told());
    let asked = shopper.user.run(&["audit", "log", "--event", "network_request", "--json"]);
    assert_eq!(asked.out, "");
}

#[test]
fn attack_options_and_addresses_are_no_packages() {
    let shopper = Shopper::new();
    for add in
        ["--registry=http://127.0.0.1:9", "../x", "git+https://evil.example/x", "x@file:/etc", "-g"]
    {
        let run = shopper.run(&["--yes"], &[install(json!({"add": [add], "manager": "npm"}))]);
        assert!(run.all("dependency.installed").is_empty(), "{add}");
        let reason = run.answers("deps.install")[0]["reason"].to_string();
        assert!(reason.contains("is not a package of the npm registry"), "{add}: {reason}");
    }
    assert_eq!(shopper.registry.log(), "");
}
