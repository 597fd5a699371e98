//! `logpond export`: records into a file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde_json::value::RawValue;

use super::ending::{AnswerFooter, note_stats};
use super::listing::exit;
use super::selection::{ResolvedSelection, meaning};
use super::{Exit, Failure, client};
use crate::cli::{Export, ExportFormat};
use logpond_client::{Answer, Client, ClientError, Item, Parameters, Trailer};
use logpond_host::terminal::{self, Out, note};
use logpond_render::quantity;

/// A time before all others that records have.
const EARLIEST: &str = "1678-01-01T00:00:00Z";

/// Bytes that are moved at a time.
const BUFFER_BYTES: usize = 64 << 10;

pub(super) fn run(mut args: Export) -> Result<Exit, Failure> {
    // As with most programs: standard output.
    args.file = args.file.filter(|path| path.as_os_str() != "-");
    let meaning = meaning(args.text.as_deref(), &args.selection)?;
    let client = client(&args.server)?;
    if args.output == ExportFormat::Parquet && args.file.is_none() && io::stdout().is_terminal() {
        return Err("a Parquet file is nothing for a terminal: name a file with -O FILE".into());
    }
    let place = args.file.as_deref().map(|path| place(path, args.force));
    let place = place.transpose()?;
    let range = range_text(&meaning);
    let answer = ask(
        &client,
        args.output,
        &args.only_fields,
        meaning.parameters(),
    )?;
    let (exit, done) = match place {
        None => {
            let mut out = Out::handed(terminal::hands(args.control_characters, false));
            let done = write(answer, args.output, &args.only_fields, &mut out)?;
            out.finish()?;
            (ended(&done), done)
        }
        Some(Place::Open(path)) => {
            let file = File::options().write(true).open(&path);
            let file = NamedFile::new(file, &path)?;
            let mut out = BufWriter::new(&file);
            let done = write(answer, args.output, &args.only_fields, &mut out)?;
            out.flush()?;
            (ended(&done), done)
        }
        Some(Place::New(path)) => write_new(&args, answer, &path)?,
    };
    say(&args, &done, &range);
    Ok(exit)
}

/// Writes a file, which has its name once it is complete.
fn write_new(args: &Export, answer: Answer, path: &Path) -> Result<(Exit, ExportOutcome), Failure> {
    let partial = partial(path);
    let file = NamedFile::new(File::create(&partial), &partial)?;
    let mut out = BufWriter::new(&file);
    let done = write(answer, args.output, &args.only_fields, &mut out);
    let done = match done {
        Err(error) if is_broken(&error) => ExportOutcome::Broken,
        done => done?,
    };
    out.flush()?;
    drop(out);
    file.sync()?;
    let exit = ended(&done);
    match exit {
        Exit::Found => put(&partial, path, args.force)?,
        _ => note(&format!(
            "logpond: what there is stays in {}",
            partial.display()
        )),
    }
    Ok((exit, done))
}

/// A place for an export.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// A file that is made, or replaced.
    New(PathBuf),
    /// Something that is written to as it is: a device, a FIFO, an open file of this process.
    Open(PathBuf),
}

/// Directories with what nobody means to replace: `/dev/stdout`, `/proc/self/fd/3`.
const OPEN_BELOW: [&str; 2] = ["/dev", "/proc"];

/// The place for an export to this path. A link stays, and the file that it leads to is meant.
fn place(path: &Path, replaces: bool) -> Result<Place, Failure> {
    let open = || Ok(Place::Open(path.to_owned()));
    if OPEN_BELOW
        .iter()
        .any(|directory| path.starts_with(directory))
    {
        return open();
    }
    let name = path.display();
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(format!(
            "{name} is a directory: name a file in it, such as -O {name}/export"
        )
        .into()),
        Ok(found) if !found.is_file() => open(),
        Ok(_) if replaces => Ok(Place::New(std::fs::canonicalize(path)?)),
        Ok(_) => Err(is_there(path)),
        Err(_) if path.is_symlink() => {
            Err(format!("{name} is a link that leads nowhere; name another file by -O").into())
        }
        Err(_) => Ok(Place::New(path.to_owned())),
    }
}

/// A file whose errors name it.
struct NamedFile<'p> {
    file: File,
    path: &'p Path,
}

impl<'p> NamedFile<'p> {
    fn new(file: io::Result<File>, path: &'p Path) -> io::Result<NamedFile<'p>> {
        let file = file.map_err(|error| named(path, &error))?;
        Ok(NamedFile { file, path })
    }

    fn sync(&self) -> io::Result<()> {
        let synced = self.file.sync_all();
        synced.map_err(|error| named(self.path, &error))
    }
}

impl Write for &NamedFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = (&self.file).write(bytes);
        written.map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            _ => named(self.path, &error),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn refuse_if_there(path: &Path) -> Result<(), Failure> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Err(is_there(path)),
        Err(_) => Ok(()),
    }
}

fn is_there(path: &Path) -> Failure {
    let path = path.display();
    format!("{path} is there already; --force replaces it, or name another file by -O").into()
}

/// Gives a complete file its name.
fn put(partial: &Path, path: &Path, replaces: bool) -> Result<(), Failure> {
    if replaces {
        // Those who may read the old file may read the new one.
        if let Ok(old) = std::fs::metadata(path) {
            std::fs::set_permissions(partial, old.permissions())?;
        }
        return Ok(std::fs::rename(partial, path)?);
    }
    // One that came meanwhile stays, too.
    let renamed = renameat_with(CWD, partial, CWD, path, RenameFlags::NOREPLACE);
    match renamed {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => {
            let partial = partial.display();
            note(&format!("logpond: what was written stays in {partial}"));
            Err(is_there(path))
        }
        // Not every file system can do that in one step.
        Err(Errno::INVAL | Errno::NOSYS) => {
            refuse_if_there(path)?;
            Ok(std::fs::rename(partial, path)?)
        }
        Err(error) => Err(io::Error::from(error).into()),
    }
}

/// Which times are written, in words: other commands have another default.
fn range_text(meaning: &ResolvedSelection) -> String {
    match (meaning.since, meaning.until) {
        (None, None) => "of all times".to_owned(),
        (Some(since), None) => format!("from {since} on"),
        (None, Some(until)) => format!("before {until}"),
        (Some(since), Some(until)) => format!("from {since} until {until}"),
    }
}

/// Says what was written.
fn say(args: &Export, done: &ExportOutcome, range: &str) {
    if let (true, ExportOutcome::Told(trailer)) = (args.stats, done) {
        note_stats(trailer.rows, trailer.bytes_scanned, trailer.elapsed_ms);
    }
    if args.quiet {
        return;
    }
    let records = match done {
        ExportOutcome::Told(trailer) => quantity::counted(trailer.rows, "record"),
        ExportOutcome::Whole => "all records".to_owned(),
        ExportOutcome::Broken => return,
    };
    note(&format!("-- {records} {range} --"));
    if let ExportOutcome::Told(trailer) = done {
        let ending = AnswerFooter {
            command: "export".to_owned(),
            selection: &args.selection,
            stats: false,
        };
        ending.note_hints(&trailer.hints);
    }
}

/// Where a file is until it is complete.
fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

fn is_broken(error: &Failure) -> bool {
    let error = error.downcast_ref::<ClientError>();
    matches!(error, Some(ClientError::Broken(_)))
}

fn ask(
    client: &Client,
    format: ExportFormat,
    fields: &[String],
    mut parameters: Parameters,
) -> Result<Answer, Failure> {
    Ok(match format {
        ExportFormat::Ndjson => {
            if !parameters.iter().any(|(name, _)| *name == "from") {
                parameters.push(("from", EARLIEST.into()));
            }
            client.get("/api/v1/query", &parameters)?
        }
        ExportFormat::Parquet => {
            let statement = format!("SELECT {} FROM logs ORDER BY time", columns(fields));
            parameters.push(("query", statement));
            parameters.push(("format", "parquet".into()));
            client.get("/api/v1/sql", &parameters)?
        }
    })
}

/// The columns of a statement: all of them, or these.
fn columns(fields: &[String]) -> String {
    match fields {
        [] => "*".to_owned(),
        fields => {
            let quoted = fields
                .iter()
                .map(|name| format!("\"{}\"", name.replace('"', "\"\"")));
            quoted.collect::<Vec<_>>().join(", ")
        }
    }
}

/// The end of an export.
enum ExportOutcome {
    /// All that the server had to say was written.
    Told(Box<Trailer>),
    /// A file, which is complete if its end is there.
    Whole,
    /// The answer ended before its end.
    Broken,
}

fn write(
    answer: Answer,
    format: ExportFormat,
    fields: &[String],
    out: &mut impl Write,
) -> Result<ExportOutcome, Failure> {
    match format {
        ExportFormat::Ndjson => write_lines(answer, fields, out),
        ExportFormat::Parquet => write_bytes(answer, out),
    }
}

fn write_lines(
    mut answer: Answer,
    fields: &[String],
    out: &mut impl Write,
) -> Result<ExportOutcome, Failure> {
    loop {
        match answer.next_item()? {
            Item::Row(line) => {
                match fields {
                    [] => out.write_all(line)?,
                    fields => out.write_all(only(line, fields)?.as_bytes())?,
                }
                out.write_all(b"\n")?;
            }
            Item::Notice(notice) => note(&notice),
            Item::Gap | Item::Progress(_) | Item::Position(_) => {}
            Item::Trailer(trailer) => return Ok(ExportOutcome::Told(Box::new(trailer))),
        }
    }
}

/// These members of a row in this order, as they were written; those that it does not have are left out.
fn only(line: &[u8], fields: &[String]) -> Result<String, Failure> {
    let row: HashMap<String, &RawValue> = serde_json::from_slice(line)?;
    let mut members = Vec::new();
    for name in fields {
        if let Some(value) = row.get(name) {
            members.push(format!("{}:{}", serde_json::to_string(name)?, value.get()));
        }
    }
    Ok(format!("{{{}}}", members.join(",")))
}

fn write_bytes(answer: Answer, out: &mut impl Write) -> Result<ExportOutcome, Failure> {
    let mut reader = answer.into_reader();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(ExportOutcome::Whole),
            Ok(read) => out.write_all(&buffer[..read])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The server breaks off what is not complete.
            Err(error) => return Err(ClientError::Broken(Some(error)).into()),
        }
    }
}

/// The exit code, after saying what is missing. That there is nothing is no failure of an export.
fn ended(done: &ExportOutcome) -> Exit {
    match done {
        ExportOutcome::Told(trailer) => exit(false, trailer, ""),
        ExportOutcome::Whole => Exit::Found,
        ExportOutcome::Broken => {
            note("logpond: the export is not complete: the answer broke off");
            Exit::Incomplete
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_replaced_unasked() {
        let directory = tempfile::tempdir().unwrap();
        let [partial, path] = ["a.partial", "a"].map(|name| directory.path().join(name));
        std::fs::write(&path, "old").unwrap();
        assert!(refuse_if_there(&path).is_err());
        assert!(refuse_if_there(&partial).is_ok());
        std::fs::write(&partial, "new").unwrap();
        let refused = put(&partial, &path, false).unwrap_err().to_string();
        assert!(refused.contains("--force"), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        put(&partial, &path, true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn only_files_are_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let (file, link, broken) = (at("file"), at("link"), at("broken"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), &broken).unwrap();
        let socket = at("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let real = std::fs::canonicalize(&file).unwrap();
        for (path, replaces, expected) in [
            (at("new"), false, Some(Place::New(at("new")))),
            (file.clone(), false, None),
            (file.clone(), true, Some(Place::New(real.clone()))),
            (link.clone(), false, None),
            (link, true, Some(Place::New(real))),
            (broken, true, None),
            (directory.path().to_owned(), true, None),
            (socket.clone(), true, Some(Place::Open(socket))),
            (
                "/dev/null".into(),
                true,
                Some(Place::Open("/dev/null".into())),
            ),
            (
                "/dev/fd/1".into(),
                false,
                Some(Place::Open("/dev/fd/1".into())),
            ),
        ] {
            assert_eq!(super::place(&path, replaces).ok(), expected, "{path:?}");
        }
        let partial = at("file.partial");
        std::fs::write(&partial, "new").unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, private).unwrap();
        put(&partial, &file, true).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn fields_are_chosen_by_name() {
        let names = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let line = br#"{"_time":"2026","a":1.50,"b":{"c":"x\"y"},"d":null}"#;
        for (fields, expected) in [
            (&["b", "a"][..], r#"{"b":{"c":"x\"y"},"a":1.50}"#),
            (&["d", "absent"], r#"{"d":null}"#),
            (&["absent"], "{}"),
        ] {
            assert_eq!(only(line, &names(fields)).unwrap(), expected);
        }
        assert_eq!(columns(&[]), "*");
        assert_eq!(columns(&names(&["time", "a\"b"])), r#""time", "a""b""#);
    }
}
