//! What an installation does: for the task, for the project, and for the next one.

use serde_json::json;

use super::registry::{Shopper, TOKEN, install, shell};

#[test]
fn dep_1_package_is_installed_used_merged_and_placed() {
    let shopper = Shopper::new();
    let run = shopper.run(
        &["--yes"],
        &[
            install(json!({"add": ["needs-greeter"], "manager": "npm"})),
            shell("node", &["-e", "require('needs-greeter')"]),
        ],
    );
    run.assert_done();
    let installed = run.all("dependency.installed");
    assert_eq!(
        installed[0]["packages"],
        json!(["greeter@1.1.0", "needs-greeter@1.0.0"]),
        "{}",
        run.told()
    );
    assert_eq!(run.answers("shell.run")[0]["summary"], "exited with code 0", "{}", run.told());
    let reviews = run.all("review.requested");
    assert_eq!(reviews.len(), 1, "{}", run.told());
    let reasons = reviews[0]["reasons"].to_string();
    assert!(reasons.contains("+ needs-greeter@1.0.0 · direct"), "{reasons}");
    assert!(reasons.contains("+ greeter@1.1.0 · transitive"), "{reasons}");
    assert!(shopper.root().join("node_modules/greeter/package.json").is_file());
    assert!(shopper.user.read("package-lock.json").contains("needs-greeter"));
    assert_eq!(shopper.user.read(".gitignore"), "node_modules/\n");
}

#[test]
fn dep_2_credentials_reach_the_registry_and_nobody_else() {
    let shopper = Shopper::new();
    let run = shopper.run(
        &["--yes"],
        &[
            install(json!({"add": ["greeter"], "manager": "npm"})),
            shell("sh-less-env", &[]),
            shell("node", &["-e", "console.log(JSON.stringify(process.env), require('fs').readdirSync(process.env.HOME))"]),
        ],
    );
    run.assert_done();
    assert!(
        shopper.registry.log().contains(&format!("Bearer {TOKEN}")),
        "{}",
        shopper.registry.log()
    );
    let everything = shopper.everything();
    let found = everything.windows(TOKEN.len()).any(|part| part == TOKEN.as_bytes());
    assert!(!found, "the token is somewhere in the project, the ledger or an environment");
    assert!(!run.told().contains(TOKEN));
}

#[test]
fn dep_3_environment_is_shared_and_made_again_when_corrupt() {
    let shopper = Shopper::new();
    shopper
        .run(&["--yes"], &[install(json!({"add": ["greeter"], "manager": "npm"}))])
        .assert_done();
    let asked = shopper.registry.log().lines().count();
    let again = [install(json!({})), shell("node", &["-e", "require('greeter')"])];
    let run = shopper.run(&["--yes"], &again);
    run.assert_done();
    assert_eq!(run.answers("shell.run")[0]["summary"], "exited with code 0", "{}", run.told());
    assert_eq!(shopper.registry.log().lines().count(), asked, "the registry was asked again");
    let listed = shopper.user.run(&["env", "list", "--json"]).json_lines();
    assert_eq!(listed.len(), 1, "{listed:?}");
    let key = listed[0]["key"].as_str().unwrap();
    let store = shopper.user.project.state().join("fluffy/sandboxes/environments").join(key);
    std::fs::write(store.join("0/node_modules/greeter/index.js"), "throw new Error('corrupt')")
        .unwrap();
    let run = shopper.run(&["--yes"], &again);
    run.assert_done();
    assert_eq!(run.answers("shell.run")[0]["summary"], "exited with code 0", "{}", run.told());
    assert!(shopper.registry.log().lines().count() > asked, "a corrupt environment was used");
}

#[test]
fn dep_1_packages_are_upgraded_and_removed() {
    let shopper = Shopper::new();
    let run = shopper.run(
        &["--yes"],
        &[
            install(json!({"add": ["greeter@1.0.0"], "manager": "npm"})),
            install(json!({"add": ["greeter@1.1.0"]})),
            install(json!({"remove": ["greeter"]})),
            shell("node", &["-e", "require('greeter')"]),
        ],
    );
    let reasons: Vec<String> =
        run.all("review.requested").iter().map(|it| it["reasons"].to_string()).collect();
    assert!(reasons[1].contains("~ greeter@1.1.0 · direct"), "{reasons:?}");
    assert!(reasons[1].contains("(was 1.0.0)"), "{reasons:?}");
    assert_eq!(run.answers("shell.run")[0]["summary"], "exited with code 1", "{}", run.told());
    assert!(!shopper.user.read("package.json").contains("greeter"));
}

#[test]
fn dep_1_what_is_typed_as_a_command_is_an_installation() {
    let shopper = Shopper::new();
    let run = shopper.run(
        &["--yes"],
        &[
            shell("npm", &["init", "-y"]),
            shell("bash", &["-c", "npm install greeter && node -e 'require(\"greeter\")'"]),
        ],
    );
    run.assert_done();
    assert_eq!(run.answers("deps.install").len(), 2, "{}", run.told());
    assert_eq!(run.answers("shell.run")[0]["summary"], "exited with code 0", "{}", run.told());
}

#[test]
fn dep_1_a_no_installs_and_stages_nothing() {
    let shopper = Shopper::new();
    let run = shopper.run(&["--no"], &[install(json!({"add": ["greeter"], "manager": "npm"}))]);
    assert!(run.all("dependency.installed").is_empty(), "{}", run.told());
    assert!(!shopper.root().join("package.json").exists());
    assert!(!shopper.root().join("node_modules").exists());
    assert!(shopper.user.run(&["env", "list", "--json"]).out.is_empty());
}

#[test]
fn dep_4_policy_decides_about_packages() {
    let shopper = Shopper::new();
    let policy = format!("{}\n", fluffy_policy::DEFAULT_POLICY)
        .replace("  deny: []\n", "  deny: [greeter]\n");
    shopper.user.write(".fluffy/policy.yaml", &policy);
    let run =
        shopper.run(&["--yes"], &[install(json!({"add": ["needs-greeter"], "manager": "npm"}))]);
    let reason = run.answers("deps.install")[0]["reason"].to_string();
    assert!(reason.contains("`greeter@1.1.0` is denied by `dependencies.deny`"), "{}", run.told());
    let policy =
        policy.replace("deny: [greeter]", "deny: []").replace("allow: []", "allow: [greeter]");
    shopper.user.write(".fluffy/policy.yaml", &policy);
    let run = shopper.run(&["--no"], &[install(json!({"add": ["greeter"], "manager": "npm"}))]);
    assert_eq!(run.all("dependency.installed").len(), 1, "{}", run.told());
}

#[test]
fn dep_4_a_yes_as_a_rule_allows_the_packages_from_now_on() {
    let shopper = Shopper::new();
    let call = install(json!({"add": ["greeter"], "manager": "npm"}));
    let answer = shopper.typing(std::slice::from_ref(&call), "r\ny\n");
    let policy = shopper.user.read(".fluffy/policy.yaml");
    assert!(policy.contains("allow: [\"npm:greeter\"]"), "{}{}", answer.out, answer.err);
    let run = shopper.run(&["--no"], &[call]);
    assert_eq!(run.all("dependency.installed").len(), 1, "{}", run.told());
}

#[test]
fn dep_5_every_package_is_in_the_ledger_and_in_the_bill_of_materials() {
    let shopper = Shopper::new();
    assert_eq!(shopper.user.run(&["audit", "sbom"]).code, 1);
    shopper
        .run(&["--yes"], &[install(json!({"add": ["needs-greeter"], "manager": "npm"}))])
        .assert_done();
    let log = shopper
        .user
        .run(&["audit", "log", "--event", "dependency_installed", "--json"])
        .json_lines();
    assert_eq!(log.len(), 1, "{log:?}");
    let head = std::process::Command::new("git")
        .args(["rev-parse", "HEAD"])
        .current_dir(shopper.root())
        .output()
        .unwrap();
    let head = String::from_utf8(head.stdout).unwrap();
    let bill = shopper.user.run(&["audit", "sbom", head.trim()]);
    assert_eq!(validated(&bill.out), "");
    assert_ne!(validated(&bill.out.replace("\"specVersion\"", "\"version_of_it\"")), "");
    let bill: serde_json::Value = serde_json::from_str(&bill.out).unwrap();
    let purls: Vec<&str> = bill["components"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["purl"].as_str().unwrap())
        .collect();
    assert_eq!(purls, ["pkg:npm/greeter@1.1.0", "pkg:npm/needs-greeter@1.0.0"]);
    assert!(bill["components"][0]["hashes"][0]["content"].as_str().unwrap().len() == 128);
    assert_eq!(shopper.user.run(&["audit", "sbom", "0000000"]).code, 2);
}

/// What a validator that others wrote has against a bill of materials.
fn validated(bill: &str) -> String {
    let python = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/tools/managers/py/bin/python");
    let script = "import sys\nfrom cyclonedx.schema import SchemaVersion\n\
                  from cyclonedx.validation.json import JsonStrictValidator\n\
                  print(JsonStrictValidator(SchemaVersion.V1_5).validate_str(sys.argv[1]) or '', end='')";
    let output = std::process::Command::new(&python).args(["-c", script, bill]).output();
    let output = output.unwrap_or_else(|error| {
        panic!("no validator at {}: {error}; run scripts/test", python.display())
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn dep_6_an_empty_directory_becomes_a_repository_with_one_commit() {
    let shopper = Shopper::new();
    shopper
        .run(&["--yes"], &[install(json!({"add": ["greeter"], "manager": "npm"}))])
        .assert_done();
    let shown = std::process::Command::new("git")
        .args(["show", "--name-only", "--format=%s"])
        .current_dir(shopper.root())
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("package-lock.json") && !shown.contains("node_modules/"), "{shown}");
}
