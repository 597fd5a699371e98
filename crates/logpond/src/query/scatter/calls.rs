//! Calls for the tasks of a question, all at once: who is late gets company, and the first whole
//! answer counts.
//!
//! Each call has a thread of its own, which ends by itself if nobody waits for it any more: a node that
//! is stuck holds up a thread for as long as calls may take, and no answer.
//!
//! Invariant: what a late node was asked for is given either by it or by the others that were asked
//! instead, all of them; never by both.

use std::collections::{BTreeMap, VecDeque};
use std::io::BufReader;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use logpond_cluster::NodeId;
use logpond_cluster::question::{Question, Task, TaskId};
use logpond_record::{Id, SourceId, TimeRange};
use logpond_segment::batches::BatchSet;
use logpond_segment::sources::SourceSet;

use super::super::QueryError;
use super::super::frames::{Frame, Frames, Receipt};
use super::super::journal_rows::Row;
use super::super::output::Output;
use super::super::question::{self, Asked};
use super::gather::Gathered;
use super::{Cluster, Reader, local};

/// How often it is looked whether anybody waits for the answer.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Read at a time from a node.
const READ_BYTES: usize = 64 << 10;

/// An answer up to its first row, or whole if it has none.
pub(super) struct Opening {
    /// Of the sources those that grew, each with the last row that is read.
    pub(super) growing: Vec<(SourceId, Id)>,
    /// What of them were batches as they were first sent.
    pub(super) batches: BatchSet,
    pub(super) table: Option<Vec<u8>>,
    pub(super) ranges: Option<Vec<TimeRange>>,
    pub(super) head: Option<Row>,
    pub(super) receipt: Option<Box<Receipt>>,
    /// The rest.
    pub(super) frames: Frames<BufReader<Reader>>,
}

/// How a call ended.
enum Outcome {
    Opened(Box<Opening>),
    /// Something of the share is not there, or no longer.
    Gone,
    Failed,
}

/// What became of a task; the question knows of it if it was not done.
pub(super) enum Done {
    Opened(Task, Box<Opening>),
    Undone(Task),
}

struct Call {
    task: Task,
    since: Instant,
    /// Whether others may be asked when it is late.
    may_hedge: bool,
}

/// A late call and those that do the same together.
struct Race {
    late: TaskId,
    others: Vec<TaskId>,
    /// Those of the others that are done.
    done: Vec<(Task, Box<Opening>)>,
}

/// Calls that are under way.
pub(super) struct Calls<'a> {
    cluster: &'a Cluster,
    asked: &'a Asked<'a>,
    waiting: BTreeMap<TaskId, Call>,
    races: Vec<Race>,
    ready: VecDeque<Done>,
    patience: Duration,
    sender: Sender<(TaskId, Outcome)>,
    receiver: Receiver<(TaskId, Outcome)>,
}

impl<'a> Calls<'a> {
    /// Asks every node of these tasks.
    pub(super) fn start(
        gathered: &Gathered<'a>,
        asked: &'a Asked<'a>,
        tasks: Vec<Task>,
    ) -> Calls<'a> {
        let (sender, receiver) = channel();
        let cluster = gathered.cluster;
        let mut calls = Calls {
            patience: cluster.hedging.patience(),
            cluster,
            asked,
            waiting: BTreeMap::new(),
            races: Vec::new(),
            ready: VecDeque::new(),
            sender,
            receiver,
        };
        let own = cluster.nodes.own();
        for task in tasks {
            let is_other = task.node != own;
            if is_other {
                cluster.hedging.earn();
            }
            calls.call(task, is_other);
        }
        calls
    }

    fn call(&mut self, task: Task, may_hedge: bool) {
        let question = question::encode(&task.share, &task.open, self.asked);
        let (cluster, sender) = (self.cluster.clone(), self.sender.clone());
        let (id, node) = (task.id, task.node);
        let call = Call {
            task,
            since: Instant::now(),
            may_hedge,
        };
        self.waiting.insert(id, call);
        let mut report = Report::new(sender, (id, Outcome::Failed));
        let spawned = thread::Builder::new()
            .name("lp-ask".to_owned())
            .spawn(move || report.say((id, open(&cluster, node, question))));
        // Without a thread its report is that it has failed.
        drop(spawned);
    }

    /// What is done next; `None` once nothing is waited for.
    pub(super) fn next(
        &mut self,
        question: &mut Question,
        out: &mut Output,
    ) -> Result<Option<Done>, QueryError> {
        loop {
            if let Some(done) = self.ready.pop_front() {
                return Ok(Some(done));
            }
            if self.waiting.is_empty() {
                return Ok(None);
            }
            match self.receiver.recv_timeout(self.until_due()) {
                Ok((id, outcome)) => self.take(question, id, outcome),
                Err(RecvTimeoutError::Timeout) => {
                    out.check()?;
                    self.hedge(question);
                }
                Err(RecvTimeoutError::Disconnected) => return Err(QueryError::Cancelled),
            }
        }
    }

    /// Until a call is late, or it is to be looked whether anybody waits.
    fn until_due(&self) -> Duration {
        let hedged = self.waiting.values().filter(|call| call.may_hedge);
        let left = hedged.map(|call| self.patience.saturating_sub(call.since.elapsed()));
        left.min().unwrap_or(CHECK_INTERVAL).min(CHECK_INTERVAL)
    }

    fn take(&mut self, question: &mut Question, id: TaskId, outcome: Outcome) {
        // One that lost its race is not waited for.
        let Some(call) = self.waiting.remove(&id) else {
            return;
        };
        if call.task.node != self.cluster.nodes.own() {
            self.cluster.hedging.note(call.since.elapsed());
        }
        let raced = self
            .races
            .iter()
            .position(|race| race.late == id || race.others.contains(&id));
        let race = raced.map(|at| self.races.swap_remove(at));
        match (outcome, race) {
            (Outcome::Opened(opening), None) => {
                self.ready.push_back(Done::Opened(call.task, opening));
            }
            (Outcome::Opened(opening), Some(race)) => self.run(question, race, call, opening),
            (outcome, race) => {
                match outcome {
                    Outcome::Gone => drop(question.receipt(id, &SourceSet::new())),
                    _ => question.failed(id),
                }
                match race {
                    None => self.ready.push_back(Done::Undone(call.task)),
                    Some(race) if race.late == id => self.go_on_without(race),
                    Some(race) => self.call_off(question, &race),
                }
            }
        }
    }

    /// One of a race is done.
    fn run(&mut self, question: &mut Question, mut race: Race, call: Call, opening: Box<Opening>) {
        if call.task.id == race.late {
            self.call_off(question, &race);
            self.ready.push_back(Done::Opened(call.task, opening));
            return;
        }
        race.done.push((call.task, opening));
        if race.done.len() < race.others.len() {
            self.races.push(race);
            return;
        }
        self.cluster.hedging.won();
        if let Some(late) = self.waiting.remove(&race.late) {
            self.cluster.hedging.note(late.since.elapsed());
            question.give_over(race.late);
            // For the rest of this answer it would be late again.
            question.avoid(late.task.node);
        }
        self.go_on_without(race);
    }

    /// The late one is out of it: the others are calls like any.
    fn go_on_without(&mut self, race: Race) {
        let done = race.done.into_iter();
        self.ready
            .extend(done.map(|(task, opening)| Done::Opened(task, opening)));
    }

    /// The others are not needed, or cannot do it all.
    fn call_off(&mut self, question: &mut Question, race: &Race) {
        for other in &race.others {
            self.waiting.remove(other);
            question.give_over(*other);
        }
    }

    /// Asks others for what late ones were asked for, where they have it.
    fn hedge(&mut self, question: &mut Question) {
        let is_late = |call: &Call| call.may_hedge && call.since.elapsed() >= self.patience;
        let late = self.waiting.iter().filter(|(_, call)| is_late(call));
        let late: Vec<TaskId> = late.map(|(id, _)| *id).collect();
        for id in late {
            if let Some(call) = self.waiting.get_mut(&id) {
                call.may_hedge = false;
            }
            let tasks = question.hedge(id);
            if tasks.is_empty() {
                continue;
            }
            let others: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
            if !self.cluster.hedging.spend(tasks.len()) {
                others.into_iter().for_each(|id| question.give_over(id));
                continue;
            }
            self.races.push(Race {
                late: id,
                others,
                done: Vec::new(),
            });
            tasks.into_iter().for_each(|task| self.call(task, false));
        }
    }
}

/// Says what came of a thread's work when it is dropped, also by a panic or for want of a thread:
/// whoever waits for it hears of it, and if nobody does, another was sooner.
pub(super) struct Report<T> {
    sender: Sender<T>,
    what: Option<T>,
}

impl<T> Report<T> {
    /// A report that says this unless something else is said.
    pub(super) fn new(sender: Sender<T>, otherwise: T) -> Report<T> {
        Report {
            sender,
            what: Some(otherwise),
        }
    }

    /// Sets what is said.
    pub(super) fn say(&mut self, what: T) {
        self.what = Some(what);
    }
}

impl<T> Drop for Report<T> {
    fn drop(&mut self) {
        if let Some(what) = self.what.take() {
            let _ = self.sender.send(what);
        }
    }
}

/// Asks a node, and reads its answer up to the first row, or to its end.
fn open(cluster: &Cluster, node: NodeId, question: Vec<u8>) -> Outcome {
    let reader = match node == cluster.nodes.own() {
        true => local::ask(&cluster.pond, question, cluster.shutdown.clone()),
        false => cluster.nodes.ask(node, &question),
    };
    let Ok(reader) = reader else {
        return Outcome::Failed;
    };
    let mut opening = Opening {
        growing: Vec::new(),
        batches: BatchSet::default(),
        table: None,
        ranges: None,
        head: None,
        receipt: None,
        frames: Frames::new(BufReader::with_capacity(READ_BYTES, reader)),
    };
    loop {
        match opening.frames.next() {
            Ok(Frame::Passed(passed)) => {
                opening.growing = passed.growing;
                opening.batches = passed.batches;
            }
            Ok(Frame::Block(_)) => {}
            Ok(Frame::Table(table)) => opening.table = Some(table),
            Ok(Frame::Ranges(ranges)) => opening.ranges = ranges,
            Ok(Frame::Row(row)) => {
                opening.head = Some(row);
                return Outcome::Opened(Box::new(opening));
            }
            Ok(Frame::Receipt(receipt)) => {
                opening.receipt = Some(receipt);
                return Outcome::Opened(Box::new(opening));
            }
            Ok(Frame::Gone) => return Outcome::Gone,
            Ok(Frame::Failed(_)) | Err(_) => return Outcome::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_comes_whatever_happens() {
        let (sender, receiver) = channel();
        let mut done = Report::new(sender.clone(), 1);
        let panics = Report::new(sender.clone(), 2);
        thread::spawn(move || done.say(10)).join().unwrap();
        let thread = thread::spawn(move || {
            let _panics = panics;
            panic!("on purpose");
        });
        assert!(thread.join().is_err());
        drop(Report::new(sender, 3));
        assert_eq!(receiver.iter().collect::<Vec<i32>>(), [10, 2, 3]);
    }
}
