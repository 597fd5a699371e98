//! How soon what one node has acknowledged is found through another one.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::servers::{Kind, Servers};
use crate::bench::table::{Report, Target, median};
use crate::run::Outcome;

/// Lines a second beside which records are looked for, and how many are.
const RATES_LOOKED: [u32; 2] = [5_000, 15_000];
const LOOKS: usize = 200;

/// How long there is load, at most: until all are found.
const SECONDS_MAX: f64 = 60.0;

/// What is waited before each, so that they are spread over the growth and the closing of several files.
const LOOK_PAUSE: Duration = Duration::from_millis(200);

/// Looks for lines beside loads of several rates.
pub(super) fn measure(program: &Path, report: &mut Report) -> Outcome<()> {
    report.table(
        "From acknowledgement to answer",
        &[
            "lines a second beside it",
            "half within, ms",
            "99 of 100 within, ms",
            "at most, ms",
            "target",
        ],
    );
    for rate in RATES_LOOKED {
        let servers = Servers::start(program, Kind::Cluster)?;
        let mut sender = servers.load(program, rate, SECONDS_MAX)?;
        let looked = (0..LOOKS).map(|number| {
            thread::sleep(LOOK_PAUSE);
            look(&servers, number)
        });
        let looked: Outcome<Vec<f64>> = looked.collect();
        let _ = sender.kill();
        let _ = sender.wait();
        let mut times = looked?;
        let half = median(&mut times);
        let late = times[(LOOKS * 99).div_ceil(100) - 1];
        report.row(vec![
            rate.to_string(),
            format!("{half:.0}"),
            format!("{late:.0}"),
            format!("{:.0}", times[LOOKS - 1]),
            Target::at_most(50.0, "<= 50 ms").judged(late),
        ]);
    }
    report.note(format!(
        "{LOOKS} lines, one every {} ms, are pushed to an ingester and acknowledged as durable. A query for a \
         word of the line then goes to another ingester, over all nodes. The time is from the acknowledgement \
         to the end of the answer; the first query found each line.",
        LOOK_PAUSE.as_millis()
    ));
    Ok(())
}

/// Milliseconds from the acknowledgement of a line to its being found elsewhere.
fn look(servers: &Servers, number: usize) -> Outcome<f64> {
    let intakes = servers.intakes();
    let word = format!("soughtafter{number}");
    let (taken, asked) = (number % intakes.len(), (number + 1) % intakes.len());
    let pushed = intakes[taken].push("text/plain", word.as_bytes())?;
    if pushed.accepted() != 1 {
        return Err(format!("{word}: {} {}", pushed.status, pushed.body));
    }
    let since = Instant::now();
    let (rows, trailer) = intakes[asked].query(&word)?;
    let ms = since.elapsed().as_secs_f64() * 1e3;
    match (rows.len(), &trailer["complete"]) {
        (1, serde_json::Value::Bool(true)) => Ok(ms),
        (count, _) => Err(format!("{word} was found {count} times: {trailer}")),
    }
}
