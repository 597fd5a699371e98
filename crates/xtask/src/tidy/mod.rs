//! The repository's own rules, as tests. `cargo test -p xtask` checks them.
//!
//! A rule that no tool checks does not hold for long; each rule of CONTRIBUTING.md that can be
//! read off the files is read off them here. Every finding names the file, the line and the rule.

mod bans;
mod documents;
mod flags;
mod language;
mod layers;
mod names;
mod sources;
mod texts;
