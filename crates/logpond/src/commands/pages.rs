//! `logpond completion`, `man` and `version`: made from the definition of the command line.

use std::path::Path;

use clap::CommandFactory;

use super::listing::print;
use super::{Exit, Failure};
use crate::cli::{Cli, Completion, Man, Version};

pub(super) fn completion(args: &Completion) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "logpond", &mut script);
    print(&script)?;
    Ok(Exit::Found)
}

pub(super) fn man(args: &Man) -> Result<Exit, Failure> {
    let mut command = Cli::command();
    command.build();
    let Some(directory) = &args.out else {
        print(&page(command)?)?;
        return Ok(Exit::Found);
    };
    std::fs::create_dir_all(directory)?;
    write_pages(directory, "logpond", command)?;
    Ok(Exit::Found)
}

/// Writes the page of a command and of all below it.
fn write_pages(directory: &Path, name: &str, command: clap::Command) -> Result<(), Failure> {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let name = format!("{name}-{}", sub.get_name());
        write_pages(directory, &name, sub.clone())?;
    }
    write_page(directory, name, command)
}

fn write_page(directory: &Path, name: &str, command: clap::Command) -> Result<(), Failure> {
    // The page's title; a name that is not static would have to live for ever.
    let title: &'static str = String::leak(name.to_string());
    let path = directory.join(format!("{name}.1"));
    std::fs::write(&path, page(command.name(title))?)
        .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    Ok(())
}

fn page(command: clap::Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(page)
}

pub(super) fn version(args: &Version) -> Result<Exit, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let text = if args.json {
        format!("{{\"name\":\"logpond\",\"version\":\"{version}\"}}\n")
    } else {
        format!("logpond {version}\n")
    };
    print(text.as_bytes())?;
    Ok(Exit::Found)
}
