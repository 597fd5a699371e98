//! The reference page, and the settings file of packages.

use super::{Count, TABLE};

/// The longest line of the settings file, in characters.
const LINE_CHARS_MAX: usize = 96;

/// The data directory of packages; the default in the table is in words.
const DATA: &str = "/var/lib/logpond";

/// A settings file with every setting commented out, at its default.
pub fn default_file() -> String {
    let mut file = String::from(
        "# Settings of logpond serve. Remove the # before a setting to change it.\n\
         # logpond config check FILE finds mistakes; logpond config show names each value's origin.\n",
    );
    for row in &TABLE {
        file.push('\n');
        write_comment(row.doc, &mut file);
        let form = format!("Value: {}. Variable: {}.", row.form, row.variable());
        write_comment(&form, &mut file);
        let default = match row.name {
            "data" => DATA,
            _ => row.default,
        };
        let is_bare = row.count == Count::Switch || default.parse::<u64>().is_ok();
        if is_bare {
            file.push_str(&format!("#{} = {default}\n", row.name))
        } else {
            file.push_str(&format!("#{} = {default:?}\n", row.name))
        }
    }
    file
}

/// Appends a text as lines of a comment.
fn write_comment(text: &str, file: &mut String) {
    let mut length = 0;
    for word in text.split_whitespace() {
        let chars = word.chars().count();
        if length == 0 || length + 1 + chars > LINE_CHARS_MAX {
            file.push_str(if length == 0 { "#" } else { "\n#" });
            length = 1;
        }
        file.push(' ');
        file.push_str(word);
        length += 1 + chars;
    }
    file.push('\n');
}

/// The reference page of all settings, in Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# Settings of `logpond serve`\n\n\
         Made from the table in `crates/settings/src/table.rs`; a test compares.\n\n\
         A setting is a key of `logpond.toml`, an environment variable and a flag. Flags win over \
         the environment, the environment over the file. The file is the one of `--config` (or \
         `LOGPOND_CONFIG`); without it `/etc/logpond/logpond.toml`, then \
         `$XDG_CONFIG_HOME/logpond/logpond.toml` over it.\n\n\
         A key of the file that no setting has is an error. A variable `LOGPOND_…` that nothing \
         reads is a warning of every command, since others put such names into the environment, \
         too: Kubernetes where a service is called `logpond` (of these, `LOGPOND_SERVICE_…` and \
         `LOGPOND_PORT…`, nothing is said).\n\n\
         `ADDR` is `IP:PORT`, `IP`, `PORT` or `:PORT`; without an IP it is `127.0.0.1`, port 0 is \
         any free one. `DURATION` is a number with `s`, `m`, `h`, `d`, `w`, `month` or `y`, also \
         several (`1d12h`). `SIZE` is a number with `B`, `KB`, `MB`, `GB`, `TB` (powers of 1000) or \
         `KiB`, `MiB`, `GiB`, `TiB` (powers of 1024). Both need their unit: a number alone is refused.\n\n\
         | key and flag | variable | value | default | meaning |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for row in &TABLE {
        page.push_str(&format!(
            "| `{}` | `{}` | `{}` | `{}` | {} |\n",
            row.name,
            row.variable(),
            row.form.replace('|', "\\|"),
            row.default,
            row.doc
        ));
    }
    page
}
