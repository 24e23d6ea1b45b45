//! Writes a CycloneDX bill of materials.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fluffy_base::Digest;
use serde_json::{Value, json};

use crate::package::{PackageOrigin, ResolvedPackage};
use crate::profile::Manager;

/// A bill of materials in CycloneDX 1.5, with the packages of each manager. `subject` is what it is of: a name and a version.
pub fn bill_of_materials(
    subject: (&str, &str),
    timestamp: &str,
    packages: &[(Manager, Vec<ResolvedPackage>)],
) -> Value {
    let mut components: Vec<Value> = Vec::new();
    for (manager, list) in packages {
        components.extend(list.iter().map(|package| component(*manager, package)));
    }
    components.sort_by_key(|component| component["bom-ref"].to_string());
    components.dedup_by_key(|component| component["bom-ref"].to_string());
    let (name, version) = subject;
    let content = json!({ "components": components, "name": name, "version": version });
    let digest = Digest::of(content.to_string().as_bytes()).to_string();
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial_number(&digest),
        "version": 1,
        "metadata": {
            "timestamp": timestamp,
            "tools": { "components": [{
                "type": "application",
                "name": "fluffy",
                "version": env!("CARGO_PKG_VERSION"),
            }] },
            "component": { "type": "application", "bom-ref": "project", "name": name, "version": version },
        },
        "components": components,
    })
}

/// The same content has the same number.
fn serial_number(digest: &str) -> String {
    let part = |from: usize, to: usize| digest.get(from..to).unwrap_or_default();
    // The bits of a version 5 UUID, whose content is a hash.
    format!(
        "urn:uuid:{}-{}-5{}-8{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}

fn component(manager: Manager, package: &ResolvedPackage) -> Value {
    let purl = package_url(manager, package);
    let mut component = json!({
        "type": "library",
        "bom-ref": purl,
        "name": package.name,
        "version": package.version,
        "purl": purl,
        "scope": "required",
    });
    let Value::Object(members) = &mut component else { return component };
    if let Some(hash) = package.integrity.as_deref().and_then(hash) {
        members.insert("hashes".to_owned(), json!([hash]));
    }
    if let Some(licence) = &package.licence {
        members.insert("licenses".to_owned(), json!([{ "license": { "name": licence } }]));
    }
    let mut properties =
        vec![json!({ "name": "fluffy:direct", "value": package.direct.to_string() })];
    if let PackageOrigin::Host(host) = &package.origin {
        properties.push(json!({ "name": "fluffy:registry", "value": host }));
    }
    members.insert("properties".to_owned(), Value::Array(properties));
    component
}

fn package_url(manager: Manager, package: &ResolvedPackage) -> String {
    let escaped = |text: &str| -> String {
        let byte = |b: u8| match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b'~' => {
                char::from(b).to_string()
            }
            other => format!("%{other:02X}"),
        };
        text.bytes().map(byte).collect()
    };
    let version = escaped(&package.version);
    let (kind, name) = match manager.ecosystem() {
        "pypi" => ("pypi", escaped(&package.name.to_ascii_lowercase().replace('_', "-"))),
        "cargo" => ("cargo", escaped(&package.name)),
        "go" => ("golang", package.name.split('/').map(escaped).collect::<Vec<_>>().join("/")),
        _npm => ("npm", package.name.split('/').map(escaped).collect::<Vec<_>>().join("/")),
    };
    format!("pkg:{kind}/{name}@{version}")
}

/// A hash as CycloneDX writes it; Go's are of a listing and not of a file.
fn hash(text: &str) -> Option<Value> {
    let (name, value) = text.split_once(['-', ':'])?;
    let (name, length) = match name {
        "sha512" => ("SHA-512", 64),
        "sha256" => ("SHA-256", 32),
        "sha1" => ("SHA-1", 20),
        _other => return None,
    };
    let is_hex = value.len() == 2 * length && value.bytes().all(|b| b.is_ascii_hexdigit());
    let hex = if is_hex {
        value.to_ascii_lowercase()
    } else {
        let bytes = STANDARD.decode(value).ok().filter(|bytes| bytes.len() == length)?;
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    Some(json!({ "alg": name, "content": hex }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_have_package_urls_and_hashes() {
        let mut scoped = ResolvedPackage::new("@s/b", "1.0.0+x", PackageOrigin::Registry);
        scoped.integrity = Some(format!("sha512-{}", STANDARD.encode([7_u8; 64])));
        let mut python = ResolvedPackage::new("Typing_Extensions", "4", PackageOrigin::Registry);
        python.integrity = Some(format!("sha256:{}", "ab".repeat(32)));
        let go = ResolvedPackage::new("github.com/a/b", "v1.0.0", PackageOrigin::Registry);
        let bill = bill_of_materials(
            ("p", "abc"),
            "2026-01-01T00:00:00Z",
            &[(Manager::Npm, vec![scoped]), (Manager::Pip, vec![python]), (Manager::Go, vec![go])],
        );
        let purls: Vec<&str> = bill["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["purl"].as_str().unwrap())
            .collect();
        let expected = [
            "pkg:golang/github.com/a/b@v1.0.0",
            "pkg:npm/%40s/b@1.0.0%2Bx",
            "pkg:pypi/typing-extensions@4",
        ];
        assert_eq!(purls, expected);
        assert_eq!(bill["components"][1]["hashes"][0]["content"].as_str().unwrap().len(), 128);
        assert_eq!(bill["components"][2]["hashes"][0]["alg"], "SHA-256");
        assert_eq!(bill["components"][0].get("hashes"), None);
        assert_eq!(bill["serialNumber"].as_str().unwrap().len(), 45);
    }

    #[test]
    fn hashes_of_another_length_are_left_out() {
        for text in ["sha512-eA==", "sha256:xyz", "h1:abc", "", "md5-x"] {
            assert_eq!(hash(text), None, "{text}");
        }
    }
}
