//! Calls for the tasks of a question, all at once: who is late gets company, and the first whole
//! answer counts.
//!
//! Each call has a thread of its own, which ends by itself if nobody waits for it any more: a node that
//! is stuck holds up a thread for as long as calls may take, and no answer. Which answers count is
//! decided by [`Races`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::BufReader;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use logpond_cluster::NodeId;
use logpond_cluster::hedge::{CallOutcome, Outcome, Races};
use logpond_cluster::question::{Question, Task, TaskId};
use logpond_record::{Id, SourceId, TimeRange};
use logpond_segment::batches::BatchSet;

use super::super::QueryError;
use super::super::frames::{Frame, Frames, Receipt};
use super::super::journal_rows::Row;
use super::super::output::Output;
use super::super::question::{self, Request};
use super::gather::Participants;
use super::{Cluster, Reader, local};

/// How often it is looked whether anybody waits for the answer.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Read at a time from a node.
const READ_BYTES: usize = 64 << 10;

/// An answer up to its first row, or whole if it has none.
pub(super) struct AnswerHead {
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
type Opened = Outcome<Box<AnswerHead>>;

/// The result of a task; the question knows of it if it was not done.
pub(super) enum TaskOutcome {
    Opened(Task, Box<AnswerHead>),
    Undone(Task),
}

/// When a call was made, and whether others may be asked when it is late.
struct Call {
    since: Instant,
    may_hedge: bool,
}

/// Calls that are under way.
pub(super) struct Calls<'a> {
    cluster: &'a Cluster,
    request: &'a Request<'a>,
    races: Races<Box<AnswerHead>>,
    /// Those that are waited for.
    made: BTreeMap<TaskId, Call>,
    ready: VecDeque<CallOutcome<Box<AnswerHead>>>,
    patience: Duration,
    sender: Sender<(TaskId, Opened)>,
    receiver: Receiver<(TaskId, Opened)>,
}

impl<'a> Calls<'a> {
    /// Asks every node of these tasks.
    pub(super) fn start(
        gathered: &Participants<'a>,
        request: &'a Request<'a>,
        tasks: Vec<Task>,
    ) -> Calls<'a> {
        let (sender, receiver) = channel();
        let cluster = gathered.cluster;
        let mut calls = Calls {
            patience: cluster.hedging.patience(),
            cluster,
            request,
            races: Races::default(),
            made: BTreeMap::new(),
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
            calls.call(&task, is_other);
            calls.races.begin(task);
        }
        calls
    }

    fn call(&mut self, task: &Task, may_hedge: bool) {
        let question = question::encode(&task.share, &task.open, self.request);
        let (cluster, sender) = (self.cluster.clone(), self.sender.clone());
        let (id, node) = (task.id, task.node);
        let call = Call {
            since: Instant::now(),
            may_hedge,
        };
        self.made.insert(id, call);
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
    ) -> Result<Option<TaskOutcome>, QueryError> {
        loop {
            match self.ready.pop_front() {
                Some(CallOutcome::Done(task, opening)) => {
                    return Ok(Some(TaskOutcome::Opened(task, opening)));
                }
                Some(CallOutcome::Undone(task)) => return Ok(Some(TaskOutcome::Undone(task))),
                Some(CallOutcome::Overtaken(_)) => {
                    self.cluster.hedging.won();
                    continue;
                }
                None => {}
            }
            if self.made.is_empty() {
                return Ok(None);
            }
            match self.receiver.recv_timeout(self.until_due()) {
                Ok((id, opened)) => self.take(question, id, opened),
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
        let hedged = self.made.values().filter(|call| call.may_hedge);
        let left = hedged.map(|call| self.patience.saturating_sub(call.since.elapsed()));
        left.min().unwrap_or(CHECK_INTERVAL).min(CHECK_INTERVAL)
    }

    fn take(&mut self, question: &mut Question, id: TaskId, opened: Opened) {
        let own = self.cluster.nodes.own();
        let is_other = |task: &Task| task.id == id && task.node != own;
        let is_other = self.races.waiting().any(is_other);
        if let Some(call) = self.made.get(&id).filter(|_| is_other) {
            self.cluster.hedging.note(call.since.elapsed());
        }
        let ended = self.races.ended(question, id, opened);
        for ended in &ended {
            if let CallOutcome::Overtaken(task) = ended
                && let Some(call) = self.made.get(&task.id)
            {
                self.cluster.hedging.note(call.since.elapsed());
            }
        }
        self.ready.extend(ended);
        let waiting: BTreeSet<TaskId> = self.races.waiting().map(|task| task.id).collect();
        self.made.retain(|id, _| waiting.contains(id));
    }

    /// Asks others for what late ones were asked for, where they have it.
    fn hedge(&mut self, question: &mut Question) {
        let is_late = |call: &Call| call.may_hedge && call.since.elapsed() >= self.patience;
        let late = self.made.iter().filter(|(_, call)| is_late(call));
        let late: Vec<TaskId> = late.map(|(id, _)| *id).collect();
        for id in late {
            if let Some(call) = self.made.get_mut(&id) {
                call.may_hedge = false;
            }
            let tasks = question.hedge(id);
            if tasks.is_empty() {
                continue;
            }
            if !self.cluster.hedging.spend(tasks.len()) {
                tasks.iter().for_each(|task| question.give_over(task.id));
                continue;
            }
            tasks.iter().for_each(|task| self.call(task, false));
            self.races.hedge(id, tasks);
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
fn open(cluster: &Cluster, node: NodeId, question: Vec<u8>) -> Opened {
    let reader = if node == cluster.nodes.own() {
        local::ask(&cluster.engine, question, cluster.shutdown.clone())
    } else {
        cluster.nodes.ask(node, &question)
    };
    let Ok(reader) = reader else {
        return Outcome::Failed;
    };
    let mut opening = AnswerHead {
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
                return Outcome::Done(Box::new(opening));
            }
            Ok(Frame::Receipt(receipt)) => {
                opening.receipt = Some(receipt);
                return Outcome::Done(Box::new(opening));
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
