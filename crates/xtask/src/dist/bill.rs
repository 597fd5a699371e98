//! The bill of materials: the packages that the program is built of (CycloneDX 1.6, JSON).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Release, write};
use crate::run::{FEATURES, Outcome, cargo, output};

/// Writes the bill of the program with all features, on its platform.
pub(super) fn write_bill(release: &Release, metadata: &Value) -> Outcome<()> {
    let bill = bill(&release.version, release.epoch, metadata)?;
    let text = serde_json::to_string_pretty(&bill).map_err(|error| error.to_string())?;
    write(&release.file(".cdx.json"), text + "\n")
}

/// Asks cargo, and writes the bill.
pub(super) fn write_of_lock(release: &Release) -> Outcome<()> {
    let mut command = cargo();
    command
        .args(["metadata", "--locked", "--format-version", "1"])
        .args(["--filter-platform", release.platform.target])
        .args(FEATURES);
    let text = output(&mut command)?;
    let metadata = serde_json::from_str(&text).map_err(|error| format!("metadata: {error}"))?;
    write_bill(release, &metadata)
}

fn bill(version: &str, epoch: u64, metadata: &Value) -> Outcome<Value> {
    let used = used(metadata)?;
    let packages = list(metadata, "packages");
    let of_others = packages
        .iter()
        .filter(|package| !package["source"].is_null());
    let mut components: Vec<Value> = of_others
        .filter(|package| used.contains(text(package, "id")))
        .map(component)
        .collect();
    components.sort_by_key(|component| text(component, "purl").to_owned());
    let time = i64::try_from(epoch).unwrap_or(0);
    let time = jiff::Timestamp::from_second(time).unwrap_or_default();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": time.to_string(),
            "component": {
                "type": "application",
                "bom-ref": format!("pkg:generic/logpond@{version}"),
                "name": "logpond",
                "version": version,
                "licenses": [{ "expression": "Apache-2.0" }],
            },
        },
        "components": components,
    }))
}

/// Ids of the packages that the program needs: without those of tests and of build scripts alone.
fn used(metadata: &Value) -> Outcome<BTreeSet<&str>> {
    let packages = list(metadata, "packages");
    let program = packages
        .iter()
        .find(|package| text(package, "name") == "logpond");
    let program = program.ok_or("cargo metadata has no package logpond")?;
    let nodes = list(&metadata["resolve"], "nodes");
    let mut found = BTreeSet::new();
    // Each package is added once, so the loop ends.
    let mut open = vec![text(program, "id")];
    while let Some(id) = open.pop() {
        if !found.insert(id) {
            continue;
        }
        let node = nodes.iter().find(|node| text(node, "id") == id);
        let dependencies = node.map_or(&[][..], |node| list(node, "deps"));
        let linked = dependencies.iter().filter(|dependency| {
            let kinds = list(dependency, "dep_kinds");
            kinds.iter().any(|kind| kind["kind"].is_null())
        });
        open.extend(linked.map(|dependency| text(dependency, "pkg")));
    }
    Ok(found)
}

fn component(package: &Value) -> Value {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let address = format!("pkg:cargo/{name}@{version}");
    let mut component = json!({
        "type": "library",
        "bom-ref": address,
        "name": name,
        "version": version,
        "purl": address,
    });
    if let Some(license) = package["license"].as_str() {
        // Older manifests part alternatives by a slash.
        let expression = license.replace('/', " OR ");
        component["licenses"] = json!([{ "expression": expression }]);
    }
    component
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_has_what_is_linked_and_nothing_else() {
        let package = |name: &str, source: Option<&str>| json!({ "id": name, "name": name, "version": "1.0.0", "source": source, "license": "MIT/Apache-2.0" });
        let node = |id: &str, deps: Vec<Value>| json!({ "id": id, "deps": deps });
        let dependency =
            |id: &str, kind: Option<&str>| json!({ "pkg": id, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [
                package("z", Some("registry")), package("logpond", None), package("a", Some("registry")),
                package("own", None), package("test", Some("registry")), package("build", Some("registry")),
            ],
            "resolve": { "nodes": [
                node("logpond", vec![
                    dependency("own", None), dependency("z", None),
                    dependency("test", Some("dev")), dependency("build", Some("build")),
                ]),
                node("own", vec![dependency("a", None), dependency("z", None)]),
                node("a", vec![dependency("own", None)]), node("z", vec![]),
                node("test", vec![]), node("build", vec![]),
            ] },
        });
        let bill = bill("1.2.3", 0, &metadata).unwrap();
        let names = list(&bill, "components").iter().map(|c| text(c, "purl"));
        assert_eq!(
            names.collect::<Vec<_>>(),
            ["pkg:cargo/a@1.0.0", "pkg:cargo/z@1.0.0"]
        );
        assert_eq!(
            bill["components"][0]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
        assert_eq!(bill["metadata"]["timestamp"], "1970-01-01T00:00:00Z");
    }
}
