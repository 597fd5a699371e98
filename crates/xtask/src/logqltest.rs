//! Loki's declarative tests of LogQL, from a directory outside of the repository.

use crate::run::{cargo, check};

/// Runs the files of a directory, and says how many of their queries are answered as they should be.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let [directory] = arguments else {
        return Err(
            "usage: cargo xtask logqltest DIRECTORY (pkg/logql/internal/logqltest/testdata \
                    of Loki's repository)"
                .to_owned(),
        );
    };
    let directory = std::path::absolute(directory).map_err(|error| error.to_string())?;
    let mut run = cargo();
    run.args(["run", "--locked", "--quiet", "-p", "logpond-search"]);
    run.args(["--example", "logqltest", "--"]).arg(directory);
    check(&mut run)
}
