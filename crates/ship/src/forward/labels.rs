//! What the path of a container's file, and what Docker has written beside it, say of its records.
//!
//! ```text
//! …/pods/NAMESPACE_POD_UID/CONTAINER/N.log            the kubelet
//! …/containers/POD_NAMESPACE_CONTAINER-ID.log         the kubelet's links to these
//! …/containers/ID/ID-json.log, config.v2.json         Docker
//! ```
//!
//! What a path does not say for certain is left out: a file may be called anything. Sources: the
//! kubelet's `kuberuntime` and `dockershim` for the names, moby's `container.Config` for the file.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;

/// The longest file of Docker's that is read: they have some 10 KiB, more with many labels.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// The longest value of a label that servers take.
const VALUE_BYTES_MAX: usize = 4096;

/// Digits of the id of a container.
const ID_DIGITS: usize = 64;

/// Names and values, the first of a name counts.
#[derive(Default)]
struct Labels(Vec<(String, String)>);

impl Labels {
    fn add(&mut self, name: &str, value: &str) {
        let is_known = self.0.iter().any(|(known, _)| known == name);
        if !is_known && !value.is_empty() && value.len() <= VALUE_BYTES_MAX {
            self.0.push((name.to_owned(), value.to_owned()));
        }
    }
}

/// The labels of a file by its path, and by its own if that is a symbolic link to it.
pub(super) fn of(path: &Path, target: Option<&Path>) -> Vec<(String, String)> {
    let mut labels = Labels::default();
    let link = std::fs::read_link(path).ok();
    for path in [Some(path), link.as_deref(), target].into_iter().flatten() {
        of_pod(path, &mut labels);
        of_link(path, &mut labels);
        of_docker(path, &mut labels);
    }
    labels.0
}

/// The names of a file and of the directories that it is in, from the inside out.
fn names(path: &Path) -> impl Iterator<Item = &str> {
    path.components()
        .rev()
        .map_while(|component| component.as_os_str().to_str())
}

/// `pods/NAMESPACE_POD_UID/CONTAINER/N.log`, or its name after a rotation.
fn of_pod(path: &Path, labels: &mut Labels) {
    let mut names = names(path);
    let (Some(file), Some(container), Some(pod), Some("pods")) =
        (names.next(), names.next(), names.next(), names.next())
    else {
        return;
    };
    let is_numbered = file.split('.').next().is_some_and(is_number) && file.contains(".log");
    let mut parts = pod.split('_');
    let (Some(namespace), Some(pod), Some(uid), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return;
    };
    let is_uid = !uid.is_empty() && uid.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    if is_numbered && is_uid && [namespace, pod, container].into_iter().all(is_name) {
        labels.add("namespace", namespace);
        labels.add("pod", pod);
        labels.add("pod_uid", uid);
        labels.add("container", container);
    }
}

/// `containers/POD_NAMESPACE_CONTAINER-ID.log`.
fn of_link(path: &Path, labels: &mut Labels) {
    let mut names = names(path);
    let (Some(file), Some("containers")) = (names.next(), names.next()) else {
        return;
    };
    let named = file.strip_suffix(".log").and_then(|stem| {
        let mut parts = stem.split('_');
        let (pod, namespace, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let (container, id) = rest.rsplit_once('-')?;
        let is_whole = parts.next().is_none() && is_id(id);
        let are_names = [pod, namespace, container].into_iter().all(is_name);
        (is_whole && are_names).then_some((pod, namespace, container, id))
    });
    if let Some((pod, namespace, container, id)) = named {
        labels.add("namespace", namespace);
        labels.add("pod", pod);
        labels.add("container", container);
        labels.add("container_id", id);
    }
}

/// `ID/ID-json.log`, or its name after a rotation, with Docker's file beside it.
fn of_docker(path: &Path, labels: &mut Labels) {
    let mut names = names(path);
    let (Some(file), Some(id)) = (names.next(), names.next()) else {
        return;
    };
    let rest = file.strip_prefix(id);
    if !is_id(id) || rest.is_none_or(|rest| !rest.starts_with("-json.log")) {
        return;
    }
    labels.add("container_id", id);
    if let Some(config) = read_config(&path.with_file_name("config.v2.json")) {
        config.add_to(labels);
    }
}

/// What is used of Docker's file.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Container {
    #[serde(default)]
    name: String,
    #[serde(default)]
    config: Config,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Config {
    #[serde(default)]
    image: String,
    #[serde(default)]
    labels: Option<HashMap<String, String>>,
}

/// Labels of containers, and the fields that they become.
const LABELS: [(&str, &str); 6] = [
    ("io.kubernetes.pod.namespace", "namespace"),
    ("io.kubernetes.pod.name", "pod"),
    ("io.kubernetes.pod.uid", "pod_uid"),
    ("io.kubernetes.container.name", "container"),
    ("com.docker.compose.project", "compose_project"),
    ("com.docker.compose.service", "compose_service"),
];

impl Container {
    fn add_to(&self, labels: &mut Labels) {
        let given = self.config.labels.as_ref();
        for (label, field) in LABELS {
            if let Some(value) = given.and_then(|given| given.get(label)) {
                labels.add(field, value);
            }
        }
        labels.add("container", self.name.trim_start_matches('/'));
        labels.add("image", &self.config.image);
    }
}

/// Reads Docker's file. One that cannot be read, or is none, says nothing: records are more important
/// than their labels.
fn read_config(path: &Path) -> Option<Container> {
    let mut text = Vec::new();
    let file = File::open(path).ok()?;
    file.take(CONFIG_BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The id of a container.
fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// A name as Kubernetes gives: a DNS subdomain (RFC 1123).
fn is_name(text: &str) -> bool {
    let is_inner = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    !text.is_empty() && text.len() <= 253 && text.bytes().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e47364bf92f3577b34da6a3ce929d0e0e4736";

    fn told(path: &Path, target: Option<&Path>) -> String {
        let labels = of(path, target);
        let each = labels.iter().map(|(name, value)| format!("{name}={value}"));
        each.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn paths_of_the_kubelet_name_containers() {
        let uid = "0c5cd3b8-6d2c-4ac2-8b4c-7d3a1d1d7f10";
        let pod = format!("namespace=shop pod=web-5f.a pod_uid={uid} container=server");
        let table = [
            (format!("/var/log/pods/shop_web-5f.a_{uid}/server/0.log"), pod.clone()),
            (
                format!("/host/log/pods/shop_web-5f.a_{uid}/server/12.log.20260302-000006"),
                pod,
            ),
            (
                "/var/log/pods/kube-system_etcd-n1_0c5cd3b86d2c4ac28b4c7d3a1d1d7f10/etcd/0.log.gz".to_owned(),
                "namespace=kube-system pod=etcd-n1 pod_uid=0c5cd3b86d2c4ac28b4c7d3a1d1d7f10 container=etcd".to_owned(),
            ),
            (
                format!("/var/log/containers/web-5f_shop_side-car-{ID}.log"),
                format!("namespace=shop pod=web-5f container=side-car container_id={ID}"),
            ),
            (format!("/var/log/pods/shop_web_{uid}_x/server/0.log"), String::new()),
            (format!("/var/log/pods/shop_web_{uid}/server/x.log"), String::new()),
            (format!("/var/log/pods/shop_web_{uid}/server/0.txt"), String::new()),
            (format!("/var/log/pods/SHOP_web_{uid}/server/0.log"), String::new()),
            ("/var/log/pods/shop_web_no uid/server/0.log".to_owned(), String::new()),
            (format!("/var/log/containers/web_shop_server-{}.log", &ID[1..]), String::new()),
            ("/var/log/containers/app.log".to_owned(), String::new()),
            ("/var/log/app.log".to_owned(), String::new()),
            ("0.log".to_owned(), String::new()),
        ];
        for (path, labels) in table {
            assert_eq!(told(Path::new(&path), None), labels, "{path}");
        }
        let link = format!("/var/log/containers/web_shop_server-{ID}.log");
        let target = format!("/var/log/pods/shop_web_{uid}/server/0.log");
        assert_eq!(
            told(Path::new(&link), Some(Path::new(&target))),
            format!("namespace=shop pod=web container=server container_id={ID} pod_uid={uid}")
        );
    }

    #[test]
    fn docker_says_what_the_container_is() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join(ID);
        std::fs::create_dir(&own).unwrap();
        let path = own.join(format!("{ID}-json.log"));
        let id = format!("container_id={ID}");
        assert_eq!(told(&path, None), id);
        let config = |text: &str| std::fs::write(own.join("config.v2.json"), text).unwrap();
        config(
            r#"{"StreamConfig":{},"ID":"4bf9","Config":{"Hostname":"4bf9","Image":"nginx:1.29",
            "Labels":{"com.docker.compose.project":"shop","com.docker.compose.service":"web",
            "maintainer":"x"}},"Name":"/shop-web-1","RestartCount":0}"#,
        );
        let all = "compose_project=shop compose_service=web container=shop-web-1 image=nginx:1.29";
        assert_eq!(told(&path, None), format!("{id} {all}"));
        let rotated = own.join(format!("{ID}-json.log.1"));
        assert_eq!(told(&rotated, None), format!("{id} {all}"));
        config(
            r#"{"Name":"/k8s_server_web","Config":{"Image":"sha256:1","Labels":{
            "io.kubernetes.pod.namespace":"shop","io.kubernetes.pod.name":"web-5f",
            "io.kubernetes.container.name":"server"}}}"#,
        );
        assert_eq!(
            told(&path, None),
            format!("{id} namespace=shop pod=web-5f container=server image=sha256:1")
        );
        config(r#"{"Name":"/a","Config":{"Image":"b","Labels":null}}"#);
        assert_eq!(told(&path, None), format!("{id} container=a image=b"));
        config(r#"{"Name":"/a","Config":"#);
        assert_eq!(told(&path, None), id);
        let long = "x".repeat(CONFIG_BYTES_MAX as usize);
        config(&format!("{{\"Name\":\"/{long}\"}}"));
        assert_eq!(told(&path, None), id);
        assert_eq!(told(&own.join("other.log"), None), "");
    }
}
