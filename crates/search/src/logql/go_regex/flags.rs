//! Flags of groups: `(?i)`, `(?s-m:`.

/// The flags that there are.
const FLAGS: [char; 4] = ['i', 'm', 's', 'U'];

/// Reads `(?flags)` or `(?flags:`: the flags, each once, and how many bytes it is.
pub(super) fn read(text: &str) -> Option<(String, usize)> {
    let inside = text.strip_prefix("(?")?;
    let end = inside.find([':', ')'])?;
    let (on, off) = match inside[..end].split_once('-') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (&inside[..end], ""),
    };
    let are_known = |flags: &str| flags.chars().all(|flag| FLAGS.contains(&flag));
    if !are_known(on) || !are_known(off) {
        return None;
    }
    // What is set and taken back is not set.
    let set = FLAGS
        .iter()
        .filter(|f| on.contains(**f) && !off.contains(**f));
    let unset: String = FLAGS.iter().filter(|f| off.contains(**f)).collect();
    let mut flags: String = set.collect();
    if !unset.is_empty() {
        flags.push('-');
        flags.push_str(&unset);
    }
    Some((flags, "(?".len() + end + 1))
}
