//! `logpond demo`: a pond with a day of made-up logs, and questions that find the incident in it.
//!
//! ```text
//! demo (lines of a second) ─▶ bodies ─▶ push over HTTP ─▶ a server: its own, or that of --addr
//! ```

mod directory;
mod filling;

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use logpond_client::{ADDRESS_DEFAULT, Address, Client};
use logpond_host::clock;
use logpond_host::terminal::note;
use logpond_render::quantity;
use logpond_search::hints::shell_word;
use logpond_settings::{Environment, Origin, SettingValue, Settings, listeners};

use self::directory::{Directory, State};
use self::filling::DaySender;
use super::listing::print;
use super::signals::set_by_signals;
use super::{Exit, Failure, access};
use crate::cli::Demo;
use crate::demo::{Day, QUESTIONS};
use crate::serve::{self, Server};

/// The port of the page that every other command asks without a flag.
const HTTP_PORT: u16 = 7650;

/// How often live records are sent, and how soon a stop is noticed.
const LIVE_INTERVAL: Duration = Duration::from_millis(250);

pub(super) fn run(args: &Demo) -> Result<Exit, Failure> {
    if args.clean
        && let Some(address) = &args.addr
    {
        return Err(unremovable(address).into());
    }
    if args.clean {
        let directory = args.data.as_deref().ok_or("--clean needs --data DIR")?;
        directory::clean(directory)?;
        note(&format!(
            "removed the pond of the demo in {}",
            directory.display()
        ));
        return Ok(Exit::Found);
    }
    let stop = Arc::new(AtomicBool::new(false));
    set_by_signals(&stop)?;
    match &args.addr {
        Some(address) => fill_server(args, address, &stop),
        None => own_pond(args, &stop),
    }
}

/// Why the records of the demo stay on a server that was filled, and what hides them.
fn unremovable(address: &str) -> String {
    format!(
        "a server removes records by its retention only, so the demo's stay in {address} until then: \
         hide them by 'NOT demo:*' in a query; a pond of the demo's own (--data DIR) can be removed"
    )
}

/// Fills a server that runs.
fn fill_server(args: &Demo, address: &str, stop: &AtomicBool) -> Result<Exit, Failure> {
    let address = Address::parse(address)?;
    let access = access(&args.access, std::slice::from_ref(&address))?;
    let client = Client::new(address, &access);
    let day = Day::new(args.seed, seconds_now());
    let mut filling = DaySender::new(&client, &day, args.seed);
    let records = filling.day(stop)?;
    show(&client, Some(records), args.once)?;
    go_on(args, filling, stop)
}

/// Starts a pond of its own and fills it, unless an earlier demo has.
fn own_pond(args: &Demo, stop: &AtomicBool) -> Result<Exit, Failure> {
    let now = seconds_now();
    let fresh = State {
        seed: args.seed,
        now,
        is_filled: false,
    };
    let directory = match &args.data {
        Some(path) => Directory::open(path, fresh)?,
        None => Directory::temporary(fresh)?,
    };
    serve::begin();
    let settings = settings(&directory.pond(), args.http.as_deref())?;
    let server = Server::start(&settings)?;
    let outcome = in_pond(args, &directory, &server, stop);
    server.stop();
    server.join()?;
    outcome
}

fn in_pond(
    args: &Demo,
    directory: &Directory,
    server: &Server,
    stop: &AtomicBool,
) -> Result<Exit, Failure> {
    let address = Address::parse(&server.addresses().http.to_string())?;
    let client = Client::new(address, &logpond_client::Access::default());
    let state = directory.state();
    let day = Day::new(state.seed, state.now);
    let mut filling = DaySender::new(&client, &day, state.seed);
    let records = if state.is_filled {
        None
    } else {
        Some(filling.day(stop)?)
    };
    if !stop.load(Ordering::Relaxed) {
        directory.note_filled()?;
        if let Some(path) = &args.ready_file {
            server.addresses().write_ready_file(path)?;
        }
        show(&client, records, args.once)?;
    }
    go_on(args, filling, stop)
}

/// Sends live records until a signal.
fn go_on(args: &Demo, mut filling: DaySender<'_>, stop: &AtomicBool) -> Result<Exit, Failure> {
    filling.skip_to(seconds_now());
    while !args.once && !stop.load(Ordering::Relaxed) {
        thread::park_timeout(LIVE_INTERVAL);
        filling.live(seconds_now())?;
    }
    Ok(Exit::Found)
}

/// Prints the address of the page and the questions.
fn show(client: &Client, records: Option<u64>, ends: bool) -> Result<(), Failure> {
    let address = client.address().to_string();
    let named = if address == ADDRESS_DEFAULT {
        String::new()
    } else {
        format!(" --addr {}", shell_word(&address))
    };
    let mut text = format!("page     {address}/?from=24h\n");
    if let Some(records) = records {
        let records = quantity::count(records);
        text += &format!("records  {records}, of the last day\n");
    }
    text += "\nSomething broke in this shop within the last day. Five questions find it:\n";
    for (number, question) in (1..).zip(&QUESTIONS) {
        let words = question.arguments.iter().map(|word| shell_word(word));
        let words: Vec<_> = words.collect();
        text += &format!("\n{number}. {}\n", question.text);
        text += &format!("   logpond {}{named}\n", words.join(" "));
        text += &format!("   {address}/{}\n", question.page);
    }
    if !ends {
        text += "\nNew records arrive until you press Ctrl-C.\n";
    }
    print(text.as_bytes())
}

/// The settings of the demo's own pond: only HTTP, on this machine, and nothing of the machine's files.
fn settings(data: &Path, http: Option<&str>) -> Result<Settings, Failure> {
    let http = http.map_or_else(http_default, str::to_owned);
    let data = data.display().to_string();
    // However full this disk is, nothing is removed to keep a part of it free.
    let mut flags = vec![
        ("data", data),
        ("http", http),
        ("keep-free", "0%".to_owned()),
    ];
    let others = listeners().filter(|listener| listener.name != "http");
    flags.extend(others.map(|listener| (listener.name, "off".to_owned())));
    let given: Vec<SettingValue> = flags
        .into_iter()
        .map(|(name, text)| SettingValue {
            name,
            text,
            origin: Origin::Flag(name),
        })
        .collect();
    let surroundings = Environment {
        variable: &|_| None,
        is_root: false,
    };
    Ok(Settings::resolve(&given, &surroundings)?)
}

/// The usual address if it is free, so that the questions need no address; any other if not.
fn http_default() -> String {
    let is_free = TcpListener::bind((Ipv4Addr::LOCALHOST, HTTP_PORT)).is_ok();
    let port = if is_free { HTTP_PORT } else { 0 };
    format!("{}:{port}", Ipv4Addr::LOCALHOST)
}

fn seconds_now() -> i64 {
    clock::now().seconds().0
}
