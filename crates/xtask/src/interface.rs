//! The tests of the interface: its formatting, its units, and all of it in a browser.

use std::process::Command;

use crate::run::{Outcome, check, find_program, missing, root, tested_program};

/// The browsers that can be driven.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// How `web/build` ends without npm of Node 20 or later.
const NO_NODE: i32 = 3;

/// Has screens looked at in all colours and widths.
const ALL: &str = "LOGPOND_ALL_LOOKS";

/// Runs them one after another; at night in all colours and widths.
///
/// # Errors
/// When one fails, or in CI a tool is missing.
pub(crate) fn test(is_night: bool) -> Outcome<()> {
    let lack = |tool: &str| missing(tool, "the interface was not tested");
    let web = root().join("web");
    let built = Command::new(web.join("build")).status();
    let built = built.map_err(|error| format!("web/build cannot be run: {error}"))?;
    let (Some(npm), false) = (find_program("npm"), built.code() == Some(NO_NODE)) else {
        return lack("npm of Node 20");
    };
    if !built.success() {
        return Err(format!("the interface cannot be built: {built}"));
    }
    let script = |name: &str| {
        let mut command = Command::new(&npm);
        command.args(["run", "--silent", name]).current_dir(&web);
        command
    };
    check(&mut script("style"))?;
    check(&mut script("test"))?;
    let Some(browser) = BROWSERS.into_iter().find_map(find_program) else {
        return lack("chromium");
    };
    let mut in_browser = script("e2e");
    in_browser.env("LOGPOND", tested_program()?);
    in_browser.env("CHROMIUM", browser);
    if is_night {
        in_browser.env(ALL, "true");
    }
    check(&mut in_browser)
}
