pub fn run(_cli: crate::cli::Cli) -> u8 {
    0
}
