//! A process that was started by root, so that it may listen where others may not, goes on as somebody
//! else.

use std::ffi::CString;

use nix::sys::prctl::set_no_new_privs;
use nix::unistd::{Group, Uid, User, geteuid, initgroups, setgid, setuid};

use crate::commands::Failure;

/// Goes on as this user (`USER` or `USER:GROUP`), for good, and so do all threads. Who is this user
/// already stays so.
///
/// # Errors
/// When there is no such user or group, or only root could become it.
pub(super) fn become_user(text: &str) -> Result<(), Failure> {
    let failed = |reason: String| -> Failure { format!("--user {text}: {reason}").into() };
    let (name, group) = match text.split_once(':') {
        Some((name, group)) => (name, Some(group)),
        None => (text, None),
    };
    let user = User::from_name(name).map_err(|error| failed(error.to_string()))?;
    let user = user.ok_or_else(|| failed("there is no such user".to_owned()))?;
    let gid = match group {
        None => user.gid,
        Some(group) => {
            let found = Group::from_name(group).map_err(|error| failed(error.to_string()))?;
            found
                .ok_or_else(|| failed("there is no such group".to_owned()))?
                .gid
        }
    };
    // No program that is started from here gets more rights by being what it is.
    set_no_new_privs().map_err(|error| failed(error.to_string()))?;
    if geteuid() == user.uid {
        return Ok(());
    }
    if !geteuid().is_root() {
        return Err(failed("only root can become another user".to_owned()));
    }
    let name = CString::new(name).map_err(|error| failed(error.to_string()))?;
    initgroups(&name, gid)
        .and_then(|()| setgid(gid))
        .and_then(|()| setuid(user.uid))
        .map_err(|error| failed(error.to_string()))?;
    match setuid(Uid::from_raw(0)) {
        Err(_) => Ok(()),
        Ok(()) => Err(failed("the rights of root are still there".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_becomes_who_is_not_there() {
        for text in ["no-such-user-here", "root:no-such-group-here"] {
            let error = become_user(text).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("--user {text}: there is no such")),
                "{error}"
            );
        }
    }
}
