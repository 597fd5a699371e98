//! What the path of a control group says of the process in it.
//!
//! systemd puts each unit into a group of the unit's name, below those of its slices; the units of a
//! user's own manager are below `user@UID.service`. Container engines put the container's id in the
//! last name.

/// Digits of a container's id.
const CONTAINER_ID_BYTES: usize = 64;

/// What a path says. What it does not say is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Group<'a> {
    /// The path itself.
    pub(super) path: &'a str,
    /// The unit of the system's manager.
    pub(super) unit: &'a str,
    /// The unit of a user's manager.
    pub(super) user_unit: &'a str,
    /// The innermost slice of the system's manager.
    pub(super) slice: &'a str,
    /// The login session.
    pub(super) session: &'a str,
    /// The user that owns the session or the manager.
    pub(super) owner_uid: &'a str,
    /// The container.
    pub(super) container_id: &'a str,
}

impl<'a> Group<'a> {
    /// Reads `/proc/PID/cgroup`: the unified hierarchy, else the one that systemd names.
    pub(super) fn of_file(text: &'a str) -> Group<'a> {
        let path = |prefix: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| {
                line.split_once(prefix)
                    .filter(|(number, _)| is_number(number))
            })
        };
        let found = path("::").or_else(|| path(":name=systemd:"));
        found.map_or(Group::default(), |(_, path)| Group::of_path(path))
    }

    fn of_path(path: &'a str) -> Group<'a> {
        let mut group = Group {
            path,
            ..Group::default()
        };
        for name in path.split('/').filter(|name| !name.is_empty()) {
            if let Some(id) = container_id(name) {
                group.container_id = id;
            }
            if let Some(user) = slice_of_user(name) {
                group.owner_uid = user;
            }
            let is_slice = name.ends_with(".slice");
            let is_unit = name.ends_with(".service") || name.ends_with(".scope");
            match (is_slice, is_unit) {
                (true, _) if group.unit.is_empty() => group.slice = name,
                (_, true) if group.unit.is_empty() => group.unit = name,
                (_, true) if group.unit.starts_with("user@") => group.user_unit = name,
                _ => {}
            }
            let session = name.strip_prefix("session-");
            if let Some(session) = session.and_then(|name| name.strip_suffix(".scope")) {
                group.session = session;
            }
        }
        group
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The number of `user-1000.slice`.
fn slice_of_user(name: &str) -> Option<&str> {
    let number = name.strip_prefix("user-")?.strip_suffix(".slice")?;
    is_number(number).then_some(number)
}

/// The id in `docker-ID.scope`, `cri-containerd-ID.scope`, `libpod-ID.scope` or just `ID`.
fn container_id(name: &str) -> Option<&str> {
    let name = name.strip_suffix(".scope").unwrap_or(name);
    let id = name.rsplit(['-', ':']).next()?;
    let is_id = id.len() == CONTAINER_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_units_sessions_and_containers() {
        let id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        let docker = format!("0::/system.slice/docker-{id}.scope\n");
        let plain = format!("12:pids:/x\n1:name=systemd:/docker/{id}\n");
        let pod = format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope\n");
        let container_unit = format!("docker-{id}.scope");
        let pod_unit = format!("cri-containerd-{id}.scope");
        let table = [
            ("0::/\n", ["", "", "", "", "", ""]),
            ("", ["", "", "", "", "", ""]),
            ("nonsense\n::/x.service", ["", "", "", "", "", ""]),
            (
                "0::/system.slice/nginx.service\n",
                ["nginx.service", "", "system.slice", "", "", ""],
            ),
            (
                "0::/system.slice/system-getty.slice/getty@tty1.service/x",
                ["getty@tty1.service", "", "system-getty.slice", "", "", ""],
            ),
            (
                "0::/user.slice/user-1000.slice/session-3.scope",
                ["session-3.scope", "", "user-1000.slice", "3", "1000", ""],
            ),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/app.slice/a.service",
                [
                    "user@1000.service",
                    "a.service",
                    "user-1000.slice",
                    "",
                    "1000",
                    "",
                ],
            ),
            (&docker, [&container_unit, "", "system.slice", "", "", id]),
            (&plain, ["", "", "", "", "", id]),
            (&pod, [&pod_unit, "", "kubepods-pod1.slice", "", "", id]),
        ];
        for (text, expected) in table {
            let group = Group::of_file(text);
            let found = [
                group.unit,
                group.user_unit,
                group.slice,
                group.session,
                group.owner_uid,
                group.container_id,
            ];
            assert_eq!(found, expected, "{text}");
        }
    }
}
