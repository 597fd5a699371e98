//! Running statements.
//!
//! A statement is planned and computed on threads of a runtime of its own, which are there from the first
//! statement on and never touch that of the server; the thread that asks hands its rows over. It waits with a
//! timer of its own: those of the runtime stand still while statements keep all its threads busy.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::error::DataFusionError;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool};
use datafusion::execution::registry::FunctionRegistry;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SendableRecordBatchStream, SessionState, SessionStateBuilder};
use datafusion::functions_aggregate::variance::var_samp_udaf;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{AggregateUDF, LogicalPlan};
use datafusion::optimizer::Analyzer;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use futures_util::StreamExt;
use logpond_search::Filter;
use logpond_search::aggregate::FieldTypes;
use logpond_search::columns::ColumnKind;
use tokio::sync::mpsc;

use crate::bounded::{self, Calls, Limits};
use crate::casts;
use crate::checkpoint::{StopFlag, with_checkpoints};
use crate::durations::{DurationPlanner, Durations};
use crate::error::{Blame, SqlError};
use crate::exchange::OneWriter;
use crate::frames::Frames;
use crate::hints;
use crate::layout::{FIELDS_MAX, Layout, ZONE};
use crate::lists::{Lists, WindowLists};
use crate::mixed::NumbersOfTexts;
use crate::overflow::CheckedNumbers;
use crate::percentiles;
use crate::postgres::{self, PostgresSession, Relation};
use crate::shown::DisplaySchema;
use crate::similar::SimilarTo;
use crate::source::{Memory, Source, ViewField};
use crate::statement;
use crate::summaries;
use crate::sums::CheckedSums;
use crate::table::Table;
use crate::texts_of_times::TextsOfTimes;
use crate::turns::{STATEMENT_WAIT_MAX, STATEMENTS_MAX, Turns};

/// Memory that all statements together may take for sorting, grouping and joining; beyond, they spill.
pub const MEMORY_BYTES_MAX: usize = 256 << 20;

/// Bytes that all statements together may spill: as much as a large sort needs, and no full disk.
pub const SPILL_BYTES_MAX: u64 = 8 << 30;

/// Threads that wait for sources: more than the scans of as many statements as there may be.
const SCAN_THREADS_MAX: usize = STATEMENTS_MAX * 16;

/// The stack of a thread that computes: conditions nest as deep as statements have parts, and each level
/// takes some frames. Of it only what is used takes memory.
const STACK_BYTES: usize = 64 << 20;

/// The same under a limit of address space, where also what is not used of a stack counts. Statements have fewer parts
/// there, in proportion.
const SMALL_STACK_BYTES: usize = 8 << 20;

/// The least address space for statements: a dozen such stacks.
const ADDRESSED_BYTES_MIN: u64 = 96 << 20;

/// Batches between a statement and its reader.
const EVENTS_MAX: usize = 2;

/// How often it is looked whether anybody waits for the answer still.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// Rows of a batch. What is merged after spilling has one of each file in memory, and all bounds of
/// functions count by it.
pub(crate) const BATCH_ROWS: usize = 2048;

/// How long a statement may compute until it has its first rows, or further ones; how long its reader
/// takes does not count. Who asked a question by mistake would not know that it never ends.
pub const SILENCE_MAX: Duration = Duration::from_secs(600);

/// The name that all tables are below.
pub(crate) const CATALOG: &str = "logpond";
const SCHEMA: &str = postgres::SCHEMA;

/// The table of all records.
const ALL: &str = "logs";

/// The field that says whose record it is.
const HOST: &str = "hostname";

/// Nobody waits for the answer any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop;

/// The dialect of a statement.
#[derive(Clone, Debug)]
pub enum Dialect {
    /// That of the engine.
    Own,
    /// That of Postgres, with its catalog and functions, for a session.
    Postgres(Arc<PostgresSession>),
}

/// A statement as it is to be run.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its text.
    pub text: String,
    /// Its dialect.
    pub dialect: Dialect,
    /// True if it is only planned, for its columns and the types of its parameters.
    pub describes: bool,
}

/// Takes an answer.
pub trait Answer {
    /// Takes the names and types of the columns, before all rows.
    ///
    /// # Errors
    /// When the work is in vain.
    fn begin(&mut self, schema: &SchemaRef) -> Result<(), Stop>;

    /// Takes the types of the parameters of a statement that is only described, by their names (`$1`).
    ///
    /// # Errors
    /// As [`Answer::begin`].
    fn parameters(&mut self, types: Vec<(String, Option<DataType>)>) -> Result<(), Stop> {
        let _ = types;
        Ok(())
    }

    /// Takes some rows. May block.
    ///
    /// # Errors
    /// As [`Answer::begin`].
    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Stop>;

    /// Says whether anybody waits still; is asked every few milliseconds.
    ///
    /// # Errors
    /// As [`Answer::begin`].
    fn check(&mut self) -> Result<(), Stop>;

    /// The same as [`Answer::check`], while the statement waits until another one has ended: it may end one
    /// whose reader does not read.
    ///
    /// # Errors
    /// As [`Answer::begin`].
    fn wait(&mut self) -> Result<(), Stop> {
        self.check()
    }

    /// The memory of the process, if it is counted.
    fn memory(&self) -> Option<Arc<dyn Memory>> {
        None
    }
}

/// Answers questions in SQL.
pub struct Sql {
    spill: PathBuf,
    memory_bytes: usize,
    parts: OnceLock<Result<Parts, String>>,
    turns: Turns,
    silence_max: Duration,
    stack_bytes: usize,
    /// Why no statement runs.
    refusal: Option<String>,
}

struct Parts {
    threads: Threads,
    /// Invariant: both environments take of this memory.
    memory: Arc<dyn MemoryPool>,
    memory_bytes: usize,
    /// That of statements that can spill; nothing as long as the disk does not take their files.
    spilling: OnceLock<Arc<RuntimeEnv>>,
}

/// The threads that compute. They are not waited for: whoever lets go of an [`Sql`] last may be a task,
/// which must not block, and no statement runs any more then.
struct Threads(Option<tokio::runtime::Runtime>);

impl Threads {
    fn runtime(&self) -> &tokio::runtime::Runtime {
        let Threads(runtime) = self;
        runtime.as_ref().expect("only dropping takes the runtime")
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Sql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sql")
            .field("spill", &self.spill)
            .finish_non_exhaustive()
    }
}

impl Sql {
    /// Costs nothing yet; statements will spill into this directory, which is made when it is needed.
    pub fn new(spill: PathBuf) -> Sql {
        Sql::with_memory(spill, MEMORY_BYTES_MAX)
    }

    /// The same with so much memory for all statements.
    pub fn with_memory(spill: PathBuf, memory_bytes: usize) -> Sql {
        Sql {
            spill,
            memory_bytes,
            parts: OnceLock::new(),
            turns: Turns::default(),
            silence_max: SILENCE_MAX,
            stack_bytes: STACK_BYTES,
            refusal: None,
        }
    }

    /// The same in a process of which so many bytes of address space are left.
    #[must_use]
    pub fn within_addresses(self, bytes: u64) -> Sql {
        let needed = ADDRESSED_BYTES_MIN >> 20;
        let refusal = (bytes < ADDRESSED_BYTES_MIN).then(|| {
            format!(
                "SQL needs {needed} MiB of address space for its threads, and ulimit -v leaves {} MiB: raise that limit",
                bytes >> 20
            )
        });
        Sql {
            stack_bytes: SMALL_STACK_BYTES,
            refusal,
            ..self
        }
    }

    /// The most words and operators of a statement: planning takes some stack for each.
    fn statement_parts_max(&self) -> usize {
        statement::PARTS_MAX * self.stack_bytes / STACK_BYTES
    }

    /// The same with so much time until there are further rows.
    #[must_use]
    pub fn silent_for(self, silence_max: Duration) -> Sql {
        Sql {
            silence_max,
            ..self
        }
    }

    /// Whether nothing computes any more.
    pub fn is_idle(&self) -> bool {
        self.turns.is_idle()
    }

    /// Runs a statement over the records of a source.
    ///
    /// # Errors
    /// Why there is no answer, or no whole one; rows may have been handed over before.
    pub fn run(
        &self,
        text: &str,
        source: Arc<dyn Source>,
        answer: &mut dyn Answer,
    ) -> Result<(), SqlError> {
        let request = Request {
            text: text.to_owned(),
            dialect: Dialect::Own,
            describes: false,
        };
        self.answer(request, source, answer)
    }

    /// Runs a statement of any dialect over the records of a source, or describes it.
    ///
    /// # Errors
    /// As [`Sql::run`].
    pub fn answer(
        &self,
        request: Request,
        source: Arc<dyn Source>,
        answer: &mut dyn Answer,
    ) -> Result<(), SqlError> {
        if let Some(refusal) = &self.refusal {
            return Err(SqlError::new(Blame::Memory, refusal.as_str()));
        }
        statement::measure(&request.text, self.statement_parts_max())?;
        let running = self.turns.wait(STATEMENT_WAIT_MAX, || answer.wait())?;
        let begin = || Parts::new(self.memory_bytes, self.stack_bytes);
        let parts = self.parts.get_or_init(begin);
        let parts = parts
            .as_ref()
            .map_err(|message| SqlError::new(Blame::Server, message.as_str()))?;
        let ending = StopFlag::default();
        let limits = Limits {
            result_bytes: parts.result_bytes(),
            ending: ending.clone(),
            memory: answer.memory(),
            keeps_types: statement::may_recurse(&request.text),
        };
        let environment = parts.environment(&self.spill)?;
        let context = context((parts, environment), source, &request, limits)?;
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let ending_there = ending.clone();
        let result_bytes = parts.result_bytes();
        let task = parts.threads.runtime().spawn(async move {
            let _running = running;
            let ended = compute(&context, request, (&ending_there, result_bytes), &sender).await;
            let ended = ended.map_err(|error| hints::explained(error, &tables(&context)));
            // Nobody hears it who does not wait any more.
            let _ = sender.send(Event::Ended(ended)).await;
        });
        let _work = TaskGuard { task, ending };
        self.hand_over(events, answer)
    }

    /// Hands over what a statement gives until it ends.
    fn hand_over(
        &self,
        mut events: mpsc::Receiver<Event>,
        answer: &mut dyn Answer,
    ) -> Result<(), SqlError> {
        let waiting = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| SqlError::new(Blame::Server, error.to_string()))?;
        let mut asked = Instant::now();
        loop {
            // Rows are handed over outside of the runtime, where that may block.
            let next = async { tokio::time::timeout(CHECK_EVERY, events.recv()).await };
            let next = waiting.block_on(next);
            let is_silent = next.is_err();
            match next {
                Ok(Some(Event::Begun(schema))) => answer.begin(&schema),
                Ok(Some(Event::Parameters(types))) => answer.parameters(types),
                Ok(Some(Event::Rows(batch))) => answer.rows(&batch),
                Ok(Some(Event::Ended(ended))) => return ended,
                Ok(None) => {
                    let message = "the statement ended by a mistake of the program";
                    return Err(SqlError::new(Blame::Server, message));
                }
                Err(_) if asked.elapsed() > self.silence_max => return Err(self.too_long()),
                Err(_) => answer.check(),
            }
            .map_err(|Stop| SqlError::new(Blame::Cancelled, "the statement was cancelled"))?;
            if !is_silent {
                asked = Instant::now();
            }
        }
    }

    fn too_long(&self) -> SqlError {
        let message = format!(
            "the statement has computed for {} s without a further row, and may not take longer: ask \
             for a shorter time, or join less",
            self.silence_max.as_secs()
        );
        SqlError::new(Blame::Statement, message)
    }
}

/// What becomes of a statement.
enum Event {
    Begun(SchemaRef),
    Parameters(Vec<(String, Option<DataType>)>),
    Rows(RecordBatch),
    Ended(Result<(), SqlError>),
}

/// Work that is stopped when its guard is dropped.
struct TaskGuard {
    task: tokio::task::JoinHandle<()>,
    ending: StopFlag,
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.ending.begin();
        self.task.abort();
    }
}

/// The tables that there are for a statement.
fn tables(context: &SessionContext) -> Vec<String> {
    let schema = context
        .catalog(CATALOG)
        .and_then(|catalog| catalog.schema(SCHEMA));
    let mut names = schema.map_or_else(Vec::new, |schema| schema.table_names());
    names.sort_unstable_by_key(|name| (name != ALL, name.clone()));
    names
}

/// Plans a statement and computes its answer.
async fn compute(
    context: &SessionContext,
    request: Request,
    (ending, result_bytes): (&StopFlag, u64),
    events: &mpsc::Sender<Event>,
) -> Result<(), SqlError> {
    let statement = match &request.dialect {
        Dialect::Own => statement::parse(&request.text)?,
        Dialect::Postgres(_) => statement::parse_postgres(&request.text)?,
    };
    let is_description = statement::is_description(&statement);
    let plan = context
        .state()
        .statement_to_plan(statement)
        .await
        .map_err(of_engine)?;
    let allowed = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false);
    allowed.verify_plan(&plan).map_err(of_engine)?;
    if request.describes {
        return describe(&plan, events).await;
    }
    let computed = async {
        let stream = begin(context, plan.clone(), (ending, result_bytes)).await?;
        send(stream, is_description, events).await
    };
    let computed = computed.await;
    computed.map_err(|error| explained(of_engine(error), context, plan))
}

/// Hands over the columns and parameters of a plan.
async fn describe(plan: &LogicalPlan, events: &mpsc::Sender<Event>) -> Result<(), SqlError> {
    let parameters = plan.get_parameter_types().map_err(of_engine)?;
    let mut parameters: Vec<_> = parameters.into_iter().collect();
    parameters.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let shown = DisplaySchema::new(plan.schema().inner(), false);
    for event in [Event::Parameters(parameters), Event::Begun(shown.schema)] {
        // Nobody hears it who does not wait any more.
        let _ = events.send(event).await;
    }
    Ok(())
}

/// Begins the answer of a plan.
async fn begin(
    context: &SessionContext,
    plan: LogicalPlan,
    (ending, result_bytes): (&StopFlag, u64),
) -> datafusion::error::Result<SendableRecordBatchStream> {
    let frame = context.execute_logical_plan(plan).await?;
    let tasks = Arc::new(frame.task_ctx());
    let plan = frame.create_physical_plan().await?;
    let batch_rows = tasks.session_config().batch_size();
    bounded::check_constants(&plan, batch_rows, result_bytes)?;
    let plan = with_checkpoints(plan, ending)?;
    execute_stream(plan, tasks)
}

/// Hands over an answer as it is shown.
async fn send(
    mut stream: SendableRecordBatchStream,
    is_description: bool,
    events: &mpsc::Sender<Event>,
) -> datafusion::error::Result<()> {
    let shown = DisplaySchema::new(&stream.schema(), is_description);
    let mut event = Event::Begun(Arc::clone(&shown.schema));
    while events.send(event).await.is_ok() {
        event = match stream.next().await {
            Some(batch) => Event::Rows(shown.rows(&batch?)?),
            None => return Ok(()),
        };
    }
    Ok(())
}

/// An error with what is known of its reason from the plan, whose types are those that comparisons give.
fn explained(error: SqlError, context: &SessionContext, plan: LogicalPlan) -> SqlError {
    let state = context.state();
    let options = state.config_options();
    let analyzer = state.analyzer();
    match analyzer.execute_and_check(plan, options, |_, _| {}) {
        Ok(plan) => casts::explained(error, &plan),
        Err(_) => error,
    }
}

fn of_engine(error: DataFusionError) -> SqlError {
    SqlError::of(&error)
}

impl Parts {
    /// Bytes of results of functions of one statement: its part of the memory.
    fn result_bytes(&self) -> u64 {
        bounded::RESULT_BYTES_MAX.min((self.memory_bytes / STATEMENTS_MAX) as u64)
    }

    fn new(memory_bytes: usize, stack_bytes: usize) -> Result<Parts, String> {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(cores)
            .max_blocking_threads(SCAN_THREADS_MAX)
            .thread_stack_size(stack_bytes)
            .thread_name("lp-sql")
            .enable_time()
            .build()
            .map_err(|error| format!("the system gives no threads for SQL: {error}"))?;
        Ok(Parts {
            threads: Threads(Some(runtime)),
            memory: Arc::new(FairSpillPool::new(memory_bytes)),
            memory_bytes,
            spilling: OnceLock::new(),
        })
    }

    /// That of a statement. With a full disk it cannot spill, which most do not.
    fn environment(&self, spill: &Path) -> Result<Arc<RuntimeEnv>, SqlError> {
        if let Some(environment) = self.spilling.get() {
            return Ok(Arc::clone(environment));
        }
        let build = |mode| {
            let disk = DiskManagerBuilder::default()
                .with_mode(mode)
                .with_max_temp_directory_size(SPILL_BYTES_MAX);
            RuntimeEnvBuilder::new()
                .with_memory_pool(Arc::clone(&self.memory))
                .with_disk_manager_builder(disk)
                .build_arc()
        };
        let spilling = build(DiskManagerMode::Directories(vec![spill.to_owned()]));
        if let Ok(environment) = spilling {
            return Ok(Arc::clone(self.spilling.get_or_init(|| environment)));
        }
        build(DiskManagerMode::Disabled).map_err(|error| SqlError::of(&error))
    }
}

/// Functions that the engine has not, or has otherwise.
fn register_functions(state: &mut SessionState, parts: &Parts) -> Result<(), SqlError> {
    let lists = AggregateUDF::from(Lists::new(parts.memory_bytes));
    let variance = AggregateUDF::clone(&var_samp_udaf()).with_aliases(["variance"]);
    for function in percentiles::functions()
        .into_iter()
        .chain([lists, variance])
    {
        state.register_udaf(Arc::new(function)).map_err(of_engine)?;
    }
    Ok(())
}

/// What a statement is planned in: its tables, and no other thing that it could reach.
fn context(
    (parts, environment): (&Parts, Arc<RuntimeEnv>),
    source: Arc<dyn Source>,
    request: &Request,
    limits: Limits,
) -> Result<SessionContext, SqlError> {
    let is_own = matches!(request.dialect, Dialect::Own);
    let mut config = SessionConfig::new()
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_information_schema(is_own)
        .with_batch_size(BATCH_ROWS);
    let config_options = config.options_mut();
    config_options.sql_parser.collect_spans = true;
    config_options.execution.time_zone = Some(ZONE.to_owned());
    // Each part of a sort would have a share of the memory, and the merge of the parts none that it could
    // spill.
    config_options.optimizer.repartition_sorts = false;
    let mut analyzer_rules = Analyzer::new().rules;
    analyzer_rules.insert(0, Arc::new(Durations));
    let mut state = SessionStateBuilder::new_with_default_features()
        .with_config(config)
        .with_runtime_env(environment)
        .with_analyzer_rules(analyzer_rules)
        .with_physical_optimizer_rule(Arc::new(OneWriter))
        .build();
    let rewrites: [Arc<dyn FunctionRewrite + Send + Sync>; 8] = [
        Arc::new(SimilarTo),
        Arc::new(TextsOfTimes),
        Arc::new(NumbersOfTexts),
        Arc::new(CheckedSums),
        Arc::new(CheckedNumbers),
        Arc::new(Frames),
        Arc::new(Calls::new(limits)),
        Arc::new(WindowLists::default()),
    ];
    for rewrite in rewrites {
        state
            .register_function_rewrite(rewrite)
            .map_err(of_engine)?;
    }
    register_functions(&mut state, parts)?;
    state
        .register_expr_planner(Arc::new(DurationPlanner))
        .map_err(of_engine)?;
    let context = SessionContext::new_with_state(state);
    let relations = register_tables(&context, &source, &request.text)?;
    if let Dialect::Postgres(session) = &request.dialect {
        postgres::register(&context, session, relations, &request.text)?;
    }
    Ok(context)
}

/// Registers the tables that a statement may read, and gives them.
fn register_tables(
    context: &SessionContext,
    source: &Arc<dyn Source>,
    text: &str,
) -> Result<Vec<Relation>, SqlError> {
    let tables = source.tables()?;
    let scans = Arc::new(AtomicUsize::new(0));
    let table = |layout, filter| -> Arc<dyn TableProvider> {
        Arc::new(Table {
            source: Arc::clone(source),
            layout,
            filter,
            scans: Arc::clone(&scans),
        })
    };
    let (named, wants_all) = statement::names(text);
    let (layout, left_out) = Layout::of_all(&tables.fields, &named);
    if wants_all && (left_out > 0 || tables.fields.is_cut()) {
        let at_least = if tables.fields.is_cut() {
            "at least "
        } else {
            ""
        };
        source.note(format!(
            "{at_least}{left_out} rare fields are not among the columns of {ALL}: name those that you want"
        ));
    }
    let mut relations = vec![Relation::new(ALL, Arc::clone(&layout.schema))];
    let all = table(layout, Filter::All);
    context.register_table(ALL, all).map_err(of_engine)?;
    let host = ViewField {
        name: HOST.into(),
        field: HOST.into(),
        kind: ColumnKind::Text,
    };
    for view in tables.views {
        // Whose records they are is no part of their lines.
        let fields = view.fields.iter().filter(|field| *field.name != *HOST);
        let fields = fields.take(FIELDS_MAX).chain([&host]);
        let layout = Layout::of_view(fields, &tables.fields);
        relations.push(Relation::new(&view.name, Arc::clone(&layout.schema)));
        let name = datafusion::common::TableReference::bare(view.name);
        context
            .register_table(name, table(layout, view.filter))
            .map_err(of_engine)?;
    }
    relations.extend(register_summaries(context, source, &tables.fields, &named)?);
    Ok(relations)
}

/// Registers the tables of fields and of patterns, and gives them. They have rows only for a statement that names them.
fn register_summaries(
    context: &SessionContext,
    source: &Arc<dyn Source>,
    fields: &FieldTypes,
    named: &HashSet<String>,
) -> Result<[Relation; 2], SqlError> {
    let patterns = if named.contains(summaries::PATTERNS) {
        source.patterns()?
    } else {
        Vec::new()
    };
    let no_fields = FieldTypes::default();
    let is_named = named.contains(summaries::FIELDS);
    let fields = if is_named { fields } else { &no_fields };
    let register = |name: &str, table: datafusion::error::Result<MemTable>| {
        let table = table.map_err(of_engine)?;
        let relation = Relation::new(name, table.schema());
        context
            .register_table(name, Arc::new(table))
            .map_err(of_engine)?;
        Ok(relation)
    };
    Ok([
        register(summaries::FIELDS, summaries::fields(fields))?,
        register(summaries::PATTERNS, summaries::patterns(&patterns))?,
    ])
}
