//! `GET|POST /api/v1/sql`: answers to statements of SQL.

use std::sync::Arc;

use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Method, Request, Response};

use super::App;
use super::body::{self, Body};
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use super::params::Params;
use super::router::FORM_BYTES_MAX;
use super::running;

/// Parameters of a statement.
pub(super) const PARAMS: [&str; 8] = [
    "query", "format", "columns", "q", "from", "to", "strict", "defuse",
];

/// Answers a statement, if this build has what it needs.
pub(super) async fn answer(
    app: &Arc<App>,
    request: Request<Inflow>,
) -> Result<Response<Body>, ApiError> {
    let (headers, params) = params_of(app, request).await?;
    running::describe(&params);
    params.only(&PARAMS)?;
    #[cfg(feature = "sql")]
    if app.sql.is_some() {
        return run::answer(app, params, &headers).await;
    }
    let _ = headers;
    let mut error = ApiError::new(Kind::NotBuilt, "this server was built without SQL");
    error.hint = Some(
        "packages of releases have it; from source: cargo build --release -p logpond --features sql"
            .to_owned(),
    );
    Err(error)
}

/// The headers and parameters of a request, whose body is a statement, or parameters.
async fn params_of(app: &App, request: Request<Inflow>) -> Result<(HeaderMap, Params), ApiError> {
    let mut params = Params::of(request.uri())?;
    let (parts, body) = request.into_parts();
    if parts.method == Method::POST {
        let received = body::receive(body, FORM_BYTES_MAX, &app.bodies).await?;
        let content_type = parts.headers.get(CONTENT_TYPE);
        let content_type = content_type
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let content_type = content_type.split(';').next().unwrap_or_default().trim();
        let text = &received.bytes[..];
        match content_type.to_ascii_lowercase().as_str() {
            _ if text.is_empty() => {}
            "application/json" => params.read_json(text)?,
            // What sends statements as they are often calls them a form.
            "application/x-www-form-urlencoded" if is_form(text) => params.read(text)?,
            "" | "text/plain" | "application/sql" | "application/x-www-form-urlencoded" => {
                let text = std::str::from_utf8(text);
                let text = text.map_err(|_| ApiError::bad_request("the statement is not UTF-8"))?;
                params.push("query", text)?;
            }
            other => {
                let message = format!(
                    "a statement comes as text/plain or application/sql, or as the parameter \
                     'query' of a form or of JSON, not as {other}"
                );
                return Err(ApiError::new(Kind::UnsupportedMediaType, message));
            }
        }
    }
    Ok((parts.headers, params))
}

/// Whether a body begins with one of the parameters.
fn is_form(text: &[u8]) -> bool {
    let name = text.split(|byte| *byte == b'=').next().unwrap_or_default();
    PARAMS.iter().any(|known| known.as_bytes() == name)
}

#[cfg(feature = "sql")]
pub(super) mod run {
    use std::sync::Mutex;
    use std::time::Instant;

    use hyper::header::{ACCEPT, HeaderValue};
    use logpond_record::{TimeRange, Timestamp};
    use logpond_sql::{
        Answer, Blame, Format, Memory, RecordBatch, SchemaRef, Source, SqlError, Stop, Writer,
    };
    use serde_json::json;

    use super::super::header_text;
    use super::super::rows::{self, Prepared};
    use super::*;
    use logpond_engine::query::Readers;
    use logpond_engine::query::{Output, Scope, SqlSource, Trailer};
    use logpond_host::clock;
    use logpond_host::memory::{Charge, Lease};
    use logpond_host::telemetry::Metrics;
    use logpond_render::defused;

    /// Names of members of lines that are no rows.
    const SAID_BESIDE_ROWS: [&str; 6] = [
        "_trailer",
        "_columns",
        "_gap",
        "_notice",
        "_position",
        "_progress",
    ];

    /// Bytes of a strict answer at most: it is held in memory until it is complete.
    const HELD_BYTES_MAX: usize = 64 << 20;

    /// How often a function that needs memory for its results looks for it: for about a second.
    const MEMORY_LOOKS_MAX: usize = 20;

    /// The memory of a statement.
    #[derive(Debug)]
    pub(crate) struct StatementLease(pub(crate) Arc<Lease>);

    impl Memory for StatementLease {
        fn hold(&self, bytes: u64) -> Result<Box<dyn Send>, String> {
            let StatementLease(lease) = self;
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX / 2);
            let mut charge = Charge::new(Some(lease));
            let mut looks = 0;
            let mut goes_on = || {
                looks += 1;
                looks < MEMORY_LOOKS_MAX
            };
            match charge.set_while(bytes, &mut goes_on) {
                Ok(()) => Ok(Box::new(charge)),
                Err(_) => Err(match lease.refusal() {
                    Some(refusal) => refusal.to_string(),
                    None => format!(
                        "{} MiB of memory for the results of a function are in use: ask again later",
                        bytes.div_ceil(1 << 20)
                    ),
                }),
            }
        }
    }

    /// The parameters of a request.
    struct StatementRequest {
        statement: String,
        scope: Scope,
        format: Format,
        /// Whether the answer begins by the names and types of its columns.
        has_columns: bool,
        is_strict: bool,
        /// True if texts of CSV that spreadsheets would take for formulas are made texts.
        are_defused: bool,
    }

    pub(super) async fn answer(
        app: &Arc<App>,
        params: Params,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, ApiError> {
        let format = format(&params, headers)?;
        let prepare = move || statement_request(&params, format);
        let app_there = app.clone();
        let run = move |request: StatementRequest, out: Output, prepared: Prepared| {
            if let Some(reader) = out.reader() {
                app_there.sql_readers.watch(reader);
            }
            let readers = app_there.sql_readers.clone();
            let metrics = Arc::clone(&app_there.metrics);
            Reply::new(request, out, (prepared, readers, metrics)).run(&app_there);
        };
        let mut response = app.threads.run(prepare, run).await?;
        let media_type = HeaderValue::from_static(format.media_type());
        response.headers_mut().insert(CONTENT_TYPE, media_type);
        // JSON says it in its trailer.
        Ok(match format {
            Format::Json => response,
            _ => header_text::note_losses(app, response).await,
        })
    }

    /// The form that is asked for: by name, or by media type.
    fn format(params: &Params, headers: &HeaderMap) -> Result<Format, ApiError> {
        if let Some(name) = params.one("format")? {
            let found = Format::ALL
                .into_iter()
                .find(|format| format.as_str() == name);
            return found.ok_or_else(|| {
                let known: Vec<_> = Format::ALL.iter().map(|format| format.as_str()).collect();
                let known = known.join(", ");
                ApiError::bad_request(format!(
                    "parameter 'format' is one of {known}, not '{name}'"
                ))
            });
        }
        let accepted = headers.get_all(ACCEPT).iter();
        let accepted = accepted.filter_map(|value| value.to_str().ok());
        let types = accepted.flat_map(|value| value.split(','));
        for wanted in types.map(|one| one.split(';').next().unwrap_or_default().trim()) {
            let is_wanted = |format: &Format| {
                let bare = format.media_type().split(';').next().unwrap_or_default();
                bare.eq_ignore_ascii_case(wanted)
            };
            if let Some(format) = Format::ALL.into_iter().find(is_wanted) {
                return Ok(format);
            }
        }
        Ok(Format::Json)
    }

    fn statement_request(params: &Params, format: Format) -> Result<StatementRequest, ApiError> {
        let statement = params.one("query")?.filter(|text| !text.trim().is_empty());
        let statement = statement.ok_or_else(|| {
            ApiError::bad_request("there is no statement: it is the body, or the parameter 'query'")
        })?;
        let now = clock::now();
        let from = rows::time(params, "from", now)?.unwrap_or(Timestamp::MIN);
        let to = rows::time(params, "to", now)?.unwrap_or(Timestamp::MAX);
        Ok(StatementRequest {
            statement: statement.to_owned(),
            scope: rows::scope_in(params, TimeRange { from, to })?,
            format,
            has_columns: params.flag("columns", false)?,
            is_strict: params.flag("strict", false)?,
            are_defused: params.flag("defuse", false)?,
        })
    }

    /// An answer on its way out.
    struct Reply {
        request: Option<StatementRequest>,
        format: Format,
        has_columns: bool,
        are_defused: bool,
        out: Output,
        prepared: Mutex<Option<Prepared>>,
        /// The readers of all statements, and the count of those that were given up.
        readers: Readers,
        metrics: Arc<Metrics>,
        schema: Option<SchemaRef>,
        writer: Option<Writer>,
        rows: u64,
        /// Bytes that are held until it is known that nothing is missing.
        held: Option<usize>,
        /// What the form cannot say.
        unwritten: Option<String>,
    }

    impl Reply {
        fn new(
            request: StatementRequest,
            mut out: Output,
            (prepared, readers, metrics): (Prepared, Readers, Arc<Metrics>),
        ) -> Reply {
            if request.is_strict {
                out.hold();
            }
            Reply {
                held: request.is_strict.then_some(0),
                format: request.format,
                has_columns: request.has_columns,
                are_defused: request.are_defused,
                request: Some(request),
                out,
                prepared: Mutex::new(Some(prepared)),
                readers,
                metrics,
                schema: None,
                writer: None,
                rows: 0,
                unwritten: None,
            }
        }

        fn run(mut self, app: &App) {
            let Some(request) = self.request.take() else {
                return;
            };
            let started = Instant::now();
            let (engine, shutdown) = (app.engine.clone(), app.shutdown.clone());
            let source = Arc::new(SqlSource::new(
                engine,
                request.scope,
                &request.statement,
                shutdown,
            ));
            let records: Arc<dyn Source> = source.clone();
            let Some(sql) = &app.sql else {
                return;
            };
            let result = sql.run(&request.statement, records, &mut self);
            let elapsed = started.elapsed();
            app.metrics.query_ns.observe_duration(elapsed);
            let mut trailer = source.trailer();
            app.metrics.query_bytes.add(trailer.bytes_scanned);
            trailer.rows = self.rows;
            let result = match self.unwritten {
                Some(_) => Err(self.why_stopped()),
                None => result.map_err(|error| self.explained(error)),
            };
            let is_cancelled = matches!(&result, Err(error) if error.blame == Blame::Cancelled);
            app.metrics.queries_cancelled.add(u64::from(is_cancelled));
            let result = result.and_then(|()| self.end());
            if let Err(mut error) = result {
                if let Some(refused) = rows::refused(&self.out) {
                    if !self.is_told() {
                        return rows::tell(&self.prepared, Err(refused));
                    }
                    error.message = refused.message;
                }
                if self.schema.is_none() || !self.is_told() {
                    return rows::tell(&self.prepared, Err(self.refusal(error)));
                }
                // That the statement was cancelled says less than the reason, which its end has.
                if !self.out.is_given_up() {
                    trailer.miss(error);
                }
            }
            if request.is_strict && trailer.missing_count > 0 {
                return rows::tell(&self.prepared, Err(rows::incomplete(&trailer)));
            }
            self.finish(trailer, elapsed.as_secs_f64() * 1000.0);
        }

        fn is_told(&self) -> bool {
            self.prepared
                .lock()
                .is_ok_and(|prepared| prepared.is_none())
        }

        /// An error, or the want of memory for which the statement was cancelled.
        fn explained(&self, mut error: SqlError) -> SqlError {
            let refusal = self.out.lease().and_then(|lease| lease.refusal());
            if let (Blame::Cancelled, Some(refusal)) = (error.blame, refusal) {
                error.blame = Blame::Memory;
                error.message = refusal.to_string();
            }
            error
        }

        fn refusal(&self, error: SqlError) -> ApiError {
            let kind = match error.blame {
                Blame::Statement => Kind::BadQuery,
                Blame::Busy => Kind::TooManyQueries,
                Blame::Memory => Kind::MemoryFull,
                Blame::Cancelled => Kind::Stopping,
                Blame::Server => Kind::Internal,
            };
            let mut refusal = ApiError::new(kind, error.message);
            if let Some((line, column)) = error.place {
                refusal.hint = Some(format!("see line {line}, column {column}"));
            }
            refusal
        }

        /// Writes what a complete answer has at its beginning, if it has no rows.
        fn end(&mut self) -> Result<(), SqlError> {
            let begun = self
                .begin_writing()
                .and_then(|()| match self.writer.take() {
                    Some(writer) => self.write(|_, bytes| writer.finish(bytes)),
                    None => Ok(()),
                });
            begun.map_err(|_| self.why_stopped())
        }

        fn why_stopped(&mut self) -> SqlError {
            let cancelled = || "the statement was cancelled".to_owned();
            SqlError {
                blame: match self.unwritten {
                    Some(_) => Blame::Statement,
                    None => Blame::Cancelled,
                },
                message: self.unwritten.take().unwrap_or_else(cancelled),
                place: None,
            }
        }

        /// Ends the answer: with a trailer, or by breaking it off where there is none.
        fn finish(mut self, mut trailer: Trailer, elapsed_ms: f64) {
            self.out.release();
            if self.out.is_given_up() {
                // Without a last line the answer breaks off.
                if self.format == Format::Json {
                    trailer.miss(rows::SLOW_READER);
                    let last = trailer.to_json(elapsed_ms).to_string();
                    self.out.leave_if_given_up(&last);
                }
                return;
            }
            if self.format == Format::Json {
                // A reader that is gone needs no trailer.
                let _ = self.out.aside(&trailer.to_json(elapsed_ms));
            } else if trailer.missing_count > 0 {
                self.out.break_off();
            }
            rows::tell(&self.prepared, Ok(()));
            let _ = self.out.flush();
        }

        fn begin_writing(&mut self) -> Result<(), Stop> {
            let (Some(schema), None) = (self.schema.clone(), &self.writer) else {
                return Ok(());
            };
            if self.has_columns && self.format == Format::Json {
                let fields = schema.fields().iter();
                let columns: Vec<_> = fields
                    .map(|field| json!({ "name": field.name(), "type": field.data_type().to_string() }))
                    .collect();
                self.out
                    .aside(&json!({ "_columns": columns }))
                    .map_err(|_| Stop)?;
            }
            let mut bytes = Vec::new();
            let writer = match self.format {
                Format::Csv if self.are_defused => Writer::of_cells(&schema, defused, &mut bytes),
                format => Writer::new(format, &schema, &mut bytes),
            };
            match writer {
                Ok(writer) => self.writer = Some(writer),
                Err(what) => {
                    self.unwritten = Some(what);
                    return Err(Stop);
                }
            }
            self.out
                .append(|chunk| chunk.append(&mut bytes))
                .map_err(|_| Stop)
        }

        fn write(
            &mut self,
            write: impl FnOnce(&mut Reply, &mut Vec<u8>) -> Result<(), String>,
        ) -> Result<(), Stop> {
            let mut bytes = Vec::new();
            if let Err(what) = write(self, &mut bytes) {
                self.unwritten = Some(what);
                return Err(Stop);
            }
            if let Some(held) = &mut self.held {
                *held += bytes.len();
                if *held > HELD_BYTES_MAX {
                    self.unwritten = Some(format!(
                        "a strict answer is held until it is complete, and may have {} MiB: ask \
                         for less, or without 'strict'",
                        HELD_BYTES_MAX >> 20
                    ));
                    return Err(Stop);
                }
            }
            self.out
                .append(|chunk| chunk.append(&mut bytes))
                .map_err(|_| Stop)
        }
    }

    impl Answer for Reply {
        fn begin(&mut self, schema: &SchemaRef) -> Result<(), Stop> {
            self.schema = Some(schema.clone());
            let mut names = schema.fields().iter().map(|field| field.name());
            let reserved = names.find(|name| SAID_BESIDE_ROWS.contains(&name.as_str()));
            if let (Some(name), Format::Json) = (reserved, self.format) {
                self.unwritten = Some(format!(
                    "a column called \"{name}\" would pass for what an answer says beside its rows: \
                     call it something else, such as \"{name}\" AS x"
                ));
                return Err(Stop);
            }
            Ok(())
        }

        fn rows(&mut self, batch: &RecordBatch) -> Result<(), Stop> {
            self.begin_writing()?;
            if self.held.is_none() {
                rows::tell(&self.prepared, Ok(()));
            }
            self.rows += batch.num_rows() as u64;
            self.write(|reply, bytes| match &mut reply.writer {
                Some(writer) => writer.write(batch, bytes),
                None => Ok(()),
            })
        }

        fn check(&mut self) -> Result<(), Stop> {
            self.out.check().map_err(|_| Stop)
        }

        fn wait(&mut self) -> Result<(), Stop> {
            self.readers.give_up_slowest(&self.metrics);
            self.check()
        }

        fn memory(&self) -> Option<Arc<dyn Memory>> {
            let lease = self.out.lease()?;
            Some(Arc::new(StatementLease(Arc::clone(lease))))
        }
    }
}
