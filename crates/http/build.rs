//! Lists the files of the page for `include_bytes!`: those of `web/dist`, which `npm run build` writes, or of
//! `web/fallback` where there are none.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The longest list of files; more is no page of ours.
const FILES_MAX: usize = 256;

/// The content type of a file by the end of its name.
const TYPES: [(&str, &str); 5] = [
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("json", "application/json"),
];

/// Names that the build gives beside the files of the page.
const MANIFEST: &str = "manifest.json";

fn main() {
    // As of this run: the place at which this program was compiled may be another one, if builds share a directory.
    let own = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let web = Path::new(&own).join("../../web");
    let (built, fallback) = (web.join("dist"), web.join("fallback"));
    for directory in [&built, &fallback] {
        println!("cargo::rerun-if-changed={}", directory.display());
    }
    let is_built = built.join("index.html").is_file();
    // The page of a build without Node has its files below `/web/`, too.
    let (directory, prefix) = if is_built {
        (built, "/")
    } else {
        (fallback, "/web/")
    };
    let mut files = Vec::new();
    collect(&directory, &mut files);
    files.sort();
    let rows = files.iter();
    let list: String = rows
        .map(|file| row(file, &path_of(file, &directory, prefix)))
        .collect();
    let text = format!(
        "/// True if the application is embedded, and not the page of a build without Node.\n\
         pub(super) const IS_BUILT: bool = {is_built};\n\n\
         /// The files of the page.\n\
         pub(super) const FILES: &[File] = &[\n{list}];\n"
    );
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("page.rs"), text).expect("the list of files can be written");
}

/// The path of a file in an address.
fn path_of(file: &Path, directory: &Path, prefix: &str) -> String {
    let inside = file.strip_prefix(directory).expect("it is inside");
    match inside.to_str().expect("names are UTF-8") {
        "index.html" => "/".to_owned(),
        inside => format!("{prefix}{inside}"),
    }
}

/// The files below a directory, without those that are another one's compressed form.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).expect("the directory can be read");
    for entry in entries {
        let path = entry.expect("the directory can be read").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let is_compressed = name.ends_with(".br") || name.ends_with(".gz");
        if path.is_dir() {
            collect(&path, files);
        } else if !name.starts_with('.') && name != MANIFEST && !is_compressed {
            assert!(
                files.len() < FILES_MAX,
                "web/dist has more than {FILES_MAX} files"
            );
            files.push(path);
        }
    }
}

/// The row of a file in the list.
fn row(file: &Path, path: &str) -> String {
    let end = file
        .extension()
        .and_then(|end| end.to_str())
        .unwrap_or_default();
    let found = TYPES.iter().find(|(known, _)| *known == end);
    let (_, content_type) =
        found.unwrap_or_else(|| panic!("no content type for {}", file.display()));
    let compressed = |suffix: &str| {
        let beside = PathBuf::from(format!("{}.{suffix}", file.display()));
        if beside.is_file() {
            format!("Some(include_bytes!({beside:?}))")
        } else {
            "None".to_owned()
        }
    };
    let mut text = String::new();
    let written = write!(
        text,
        "    File {{\n        path: {path:?},\n        content_type: {content_type:?},\n        \
         plain: include_bytes!({file:?}),\n        gzip: {},\n        brotli: {},\n    }},\n",
        compressed("gz"),
        compressed("br")
    );
    written.expect("a text can be written to");
    text
}
