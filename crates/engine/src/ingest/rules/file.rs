//! The file of rules: TOML, read with a bound, each mistake named with its place.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::hmac;
use logpond_record::Value;
use logpond_record::limits::FIELD_NAME_BYTES_MAX;
use logpond_search::query::Pattern;
use logpond_search::{Finder, Matcher, Replacement, nearest, query};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::changes::{LINE, Redaction, Redactor, Replace};
use super::error::RulesError;
use super::locating::Locator;
use super::quota::QuotaDefinition;
use super::rule::{Action, Changes, RuleDefinition, SAMPLE_RATE};
use crate::geoip::Geoip;
use logpond_host::terminal::with_causes;
use logpond_protocol::intake::rewrite::{MESSAGE, MESSAGE_KEYS};
use logpond_settings::{parse_age, parse_bytes, position};

/// The longest file that is read: far above any that people write.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The most rules: each is asked for each record.
const RULES_MAX: usize = 500;

/// The most quotas: each counts each record.
const QUOTAS_MAX: usize = 50;

/// The longest name, which metrics carry.
const NAME_BYTES_MAX: usize = 64;

/// A key that is shorter can be found by trying.
const KEY_BYTES_MIN: usize = 16;

/// A longer key makes no hash safer.
const KEY_BYTES_MAX: u64 = 4096;

/// The shortest window of a quota.
const WINDOW_MIN_NS: i64 = 1_000_000_000;

/// The longest window of a quota.
const WINDOW_MAX_NS: i64 = 31 * 86_400 * 1_000_000_000;

/// The least and the most of a sample.
const SAMPLE: std::ops::RangeInclusive<i64> = 2..=1_000_000_000;

/// The most databases of addresses: each is asked for each address.
const DATABASES_MAX: usize = 8;

/// The field whose addresses are looked up, unless another one is named.
const ADDRESS_FIELD: &str = "remote_addr";

/// The longest text that replaces something.
const WITH_BYTES_MAX: usize = 1024;

const TOP_KEYS: [&str; 5] = ["rule", "quota", "hash-key-file", "geoip", "geoip-field"];

const RULE_KEYS: [&str; 11] = [
    "name",
    "where",
    "drop",
    "sample",
    "add",
    "redact",
    "hash",
    "anonymise",
    "remove",
    "replace",
    "remove-ansi",
];

const QUOTA_KEYS: [&str; 6] = ["name", "where", "by", "records", "bytes", "every"];

const REPLACE_KEYS: [&str; 3] = ["field", "pattern", "with"];

/// What is no field: it is a record's place and time.
const RESERVED: [&str; 4] = ["_time", "_received", "_id", "_time_source"];

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct Definition {
    pub(super) rules: Vec<RuleDefinition>,
    pub(super) quotas: Vec<QuotaDefinition>,
    pub(super) locator: Option<Locator>,
    /// Other files that were read for it.
    pub(super) files: Vec<PathBuf>,
}

/// Reads a file of rules, and that of the key if it names one.
pub(super) fn read(path: &Path) -> Result<Definition, RulesError> {
    let what = "the file of rules";
    let bytes = read_bounded(what, path, FILE_BYTES_MAX)?;
    let text = String::from_utf8(bytes).map_err(|_| RulesError::Unreadable {
        what,
        path: path.to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8 text"),
    })?;
    parse(&text, path)
}

fn read_bounded(what: &'static str, path: &Path, bytes_max: u64) -> Result<Vec<u8>, RulesError> {
    logpond_host::disk::read_bounded(path, bytes_max).map_err(|source| RulesError::Unreadable {
        what,
        path: path.to_owned(),
        source,
    })
}

/// Reads the text of a file; `path` names it in errors, and is where the key's name begins.
pub(super) fn parse(text: &str, path: &Path) -> Result<Definition, RulesError> {
    let place = Place { text, path };
    let table = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        place.wrong(span, error.message().to_owned())
    })?;
    let mut definition = Definition::default();
    let entries = place.entries(table.into_inner(), "a file of rules", &TOP_KEYS)?;
    let key = hash_key(&place, &entries, &mut definition.files)?;
    definition.locator = locating(&place, &entries, &mut definition.files)?;
    for (name, value) in entries {
        match name {
            "rule" => {
                definition.rules = place.tables("rule", RULES_MAX, value, |number, table| {
                    rule(&place, number, table, key.as_ref())
                })?
            }
            "quota" => {
                definition.quotas = place.tables("quota", QUOTAS_MAX, value, |number, table| {
                    quota(&place, number, table)
                })?;
            }
            _ => {}
        }
    }
    let rules = definition.rules.iter().map(|rule| &*rule.name);
    let quotas = definition.quotas.iter().map(|quota| &*quota.name);
    place.are_distinct("rules", rules)?;
    place.are_distinct("quotas", quotas)?;
    Ok(definition)
}

fn hash_key(
    place: &Place<'_>,
    entries: &[(&'static str, Spanned<DeValue<'_>>)],
    files: &mut Vec<PathBuf>,
) -> Result<Option<Arc<hmac::Key>>, RulesError> {
    let Some((name, value)) = entries.iter().find(|(name, _)| *name == "hash-key-file") else {
        return Ok(None);
    };
    let named = place.text_of(name, value)?;
    let directory = place.path.parent().unwrap_or(Path::new(""));
    let path = directory.join(&named);
    let mut bytes = read_bounded("the key of hashes", &path, KEY_BYTES_MAX)?;
    while bytes
        .last()
        .is_some_and(|byte| matches!(byte, b'\n' | b'\r'))
    {
        bytes.pop();
    }
    if bytes.len() < KEY_BYTES_MIN {
        let message = format!(
            "the key in '{named}' has {} bytes; it needs {KEY_BYTES_MIN} at least, such as those of: \
             head -c 32 /dev/urandom | base64",
            bytes.len()
        );
        return Err(place.wrong(value.span(), message));
    }
    files.push(path);
    Ok(Some(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &bytes))))
}

/// The databases of addresses, and the field whose addresses are looked up.
fn locating(
    place: &Place<'_>,
    entries: &[(&'static str, Spanned<DeValue<'_>>)],
    files: &mut Vec<PathBuf>,
) -> Result<Option<Locator>, RulesError> {
    let of = |wanted| entries.iter().find(|(name, _)| *name == wanted);
    let field = match of("geoip-field") {
        Some((name, value)) => place.text_of(name, value)?,
        None => ADDRESS_FIELD.to_owned(),
    };
    let Some((name, value)) = of("geoip") else {
        return Ok(None);
    };
    let directory = place.path.parent().unwrap_or(Path::new(""));
    let named = place.texts(name, value)?.into_iter();
    let paths: Vec<PathBuf> = named.map(|(named, _)| directory.join(named)).collect();
    if !(1..=DATABASES_MAX).contains(&paths.len()) {
        let message = format!("geoip names from 1 to {DATABASES_MAX} files");
        return Err(place.wrong(value.span(), message));
    }
    let geoip = Geoip::open(&paths).map_err(|error| {
        let message = with_causes(&error);
        place.wrong(value.span(), message)
    })?;
    files.extend(paths);
    Ok(Some(Locator {
        geoip: Arc::new(geoip),
        field: field.into(),
    }))
}

type Entries<'t> = Vec<(&'static str, Spanned<DeValue<'t>>)>;

fn rule(
    place: &Place<'_>,
    number: usize,
    (table, span): (DeTable<'_>, Range<usize>),
    key: Option<&Arc<hmac::Key>>,
) -> Result<RuleDefinition, RulesError> {
    let entries = place.entries(table, "a rule", &RULE_KEYS)?;
    let name = place.name(number, &entries)?;
    let (_, matcher) = place.filter(&entries)?;
    let mut changes = Changes::default();
    let mut drops = false;
    for (key_name, value) in &entries {
        let (key_name, at) = (*key_name, value.span());
        match key_name {
            "drop" => drops = place.truth(key_name, value)?,
            "sample" => changes.sample = Some(sample(place, value)?),
            "remove-ansi" => changes.strips_ansi = place.truth(key_name, value)?,
            "replace" => changes.replace = replaces(place, value)?,
            "add" => changes.add = added(place, value)?,
            "redact" | "hash" | "anonymise" | "remove" => {
                let how = match key_name {
                    "redact" => Redaction::Redact,
                    "hash" => Redaction::Hash,
                    "anonymise" => Redaction::Anonymise,
                    _ => Redaction::Remove,
                };
                if how == Redaction::Hash && key.is_none() {
                    let message = "hashes need a key, so that nobody finds the values by trying: \
                                   hash-key-file = \"FILE\" at the top of this file";
                    return Err(place.wrong(at, message.to_owned()));
                }
                hide(place, key_name, value, how, &mut changes.redactor)?;
                changes.redactor.key = key.cloned();
            }
            _ => {}
        }
    }
    let changes_any = changes.sample.is_some() || changes.has_any();
    let action = match (drops, changes_any) {
        (true, false) => Action::Drop,
        (false, true) => Action::Change(Box::new(changes)),
        (true, true) => {
            let message = "what this rule drops cannot be changed, too; make two rules of it";
            return Err(place.wrong(span, message.to_owned()));
        }
        (false, false) => {
            let message = format!(
                "this rule does nothing; give it one of {}",
                RULE_KEYS[2..].join(", ")
            );
            return Err(place.wrong(span, message));
        }
    };
    Ok(RuleDefinition {
        name,
        matcher,
        action,
    })
}

fn sample(place: &Place<'_>, value: &Spanned<DeValue<'_>>) -> Result<u64, RulesError> {
    let every = place.whole("sample", value)?;
    if SAMPLE.contains(&every) {
        Ok(every.unsigned_abs())
    } else {
        Err(place.wrong(
            value.span(),
            format!(
                "sample keeps one in so many: a number from {} to {}",
                SAMPLE.start(),
                SAMPLE.end()
            ),
        ))
    }
}

fn hide(
    place: &Place<'_>,
    key: &str,
    value: &Spanned<DeValue<'_>>,
    how: Redaction,
    redactor: &mut Redactor,
) -> Result<(), RulesError> {
    for (name, span) in place.texts(key, value)? {
        place.is_field(&name, span.clone(), false)?;
        if redactor.fields.insert(name.clone().into(), how).is_some() {
            let message = format!("the field '{name}' is hidden twice in this rule");
            return Err(place.wrong(span, message));
        }
    }
    // Whoever names the message as senders do means it.
    let named = MESSAGE_KEYS
        .iter()
        .find_map(|key| redactor.fields.get(*key).copied());
    if let Some(how) = named {
        redactor.fields.entry(MESSAGE.into()).or_insert(how);
    }
    Ok(())
}

fn replaces(place: &Place<'_>, value: &Spanned<DeValue<'_>>) -> Result<Vec<Replace>, RulesError> {
    let DeValue::Array(tables) = value.get_ref() else {
        return Err(place.expected("replace", "a list of tables", value.span()));
    };
    let mut all = Vec::with_capacity(tables.len());
    for table in tables {
        let DeValue::Table(entries) = table.get_ref() else {
            return Err(place.expected("replace", "a list of tables", table.span()));
        };
        all.push(replace(place, entries.clone(), table.span())?);
    }
    Ok(all)
}

fn replace(
    place: &Place<'_>,
    table: DeTable<'_>,
    span: Range<usize>,
) -> Result<Replace, RulesError> {
    let entries = place.entries(table, "replace", &REPLACE_KEYS)?;
    let text = |name: &'static str| {
        let Some((_, value)) = entries.iter().find(|(known, _)| *known == name) else {
            let message = format!("'{name}' is missing; replace needs field, pattern and with");
            return Err(place.wrong(span.clone(), message));
        };
        Ok((place.text_of(name, value)?, value.span()))
    };
    let (field, field_span) = text("field")?;
    place.is_field(&field, field_span, true)?;
    let (pattern, pattern_span) = text("pattern")?;
    let pattern = Pattern::regex(&pattern, false);
    let finder =
        Finder::new(&pattern).map_err(|error| place.wrong(pattern_span, error.to_string()))?;
    let (with, with_span) = text("with")?;
    if with.len() > WITH_BYTES_MAX {
        let message = format!("with has at most {WITH_BYTES_MAX} bytes");
        return Err(place.wrong(with_span.clone(), message));
    }
    let field = if MESSAGE_KEYS.contains(&&*field) {
        MESSAGE.into()
    } else {
        field.into()
    };
    let with = Replacement::new(&with, &pattern)
        .map_err(|error| place.wrong(with_span, format!("with: {error}")))?;
    Ok(Replace {
        field,
        finder,
        with,
    })
}

fn added(
    place: &Place<'_>,
    value: &Spanned<DeValue<'_>>,
) -> Result<Vec<(Box<str>, Value<'static>)>, RulesError> {
    let DeValue::Table(table) = value.get_ref() else {
        return Err(place.expected("add", "a table of fields", value.span()));
    };
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    let mut fields = Vec::with_capacity(entries.len());
    for (name, value) in entries {
        let text = name.get_ref();
        place.is_field(text, name.span(), false)?;
        if MESSAGE_KEYS[..1].contains(&&**text) || **text == *SAMPLE_RATE {
            let message = format!("'{text}' is not for rules to add");
            return Err(place.wrong(name.span(), message));
        }
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Str(text.to_string().into()),
            DeValue::Boolean(truth) => Value::Bool(*truth),
            DeValue::Integer(_) => Value::Int(place.whole("add", value)?),
            DeValue::Float(number) => match number.to_string().parse() {
                Ok(number) => Value::Float(number),
                Err(_) => return Err(place.expected("add", "a number", value.span())),
            },
            _ => {
                let expected = "texts, numbers, true or false";
                return Err(place.expected("add", expected, value.span()));
            }
        };
        fields.push((text.to_string().into(), value));
    }
    Ok(fields)
}

fn quota(
    place: &Place<'_>,
    number: usize,
    (table, span): (DeTable<'_>, Range<usize>),
) -> Result<QuotaDefinition, RulesError> {
    let entries = place.entries(table, "a quota", &QUOTA_KEYS)?;
    let (filter, matcher) = place.filter(&entries)?;
    let mut definition = QuotaDefinition {
        name: place.name(number, &entries)?,
        filter,
        matcher,
        by: Vec::new(),
        records_max: None,
        bytes_max: None,
        window_ns: 0,
    };
    for (name, value) in &entries {
        let (name, at) = (*name, value.span());
        match name {
            "by" => {
                for (field, span) in place.texts(name, value)? {
                    place.is_field(&field, span, false)?;
                    definition.by.push(field.into());
                }
            }
            "records" => {
                let records = place.whole(name, value)?;
                let records = u64::try_from(records).ok().filter(|records| *records > 0);
                let expected = "how many records are let in, 1 or more";
                let records = records.ok_or_else(|| place.expected(name, expected, at))?;
                definition.records_max = Some(records);
            }
            "bytes" => {
                let bytes = place.amount(name, value, parse_bytes)?;
                definition.bytes_max = Some(bytes.max(1));
            }
            "every" => {
                let window = place.amount(name, value, parse_age)?;
                let window = i64::try_from(window.as_nanos()).unwrap_or(i64::MAX);
                if !(WINDOW_MIN_NS..=WINDOW_MAX_NS).contains(&window) {
                    let message = "a window of a quota is from 1s to 31d long".to_owned();
                    return Err(place.wrong(at, message));
                }
                definition.window_ns = window;
            }
            _ => {}
        }
    }
    if definition.window_ns == 0 {
        let message = "'every' is missing: within which time, such as every = \"1m\"".to_owned();
        return Err(place.wrong(span, message));
    }
    if definition.records_max.is_none() && definition.bytes_max.is_none() {
        let message = "this quota has no end: give it records = 10000, bytes = \"50MB\", or both";
        return Err(place.wrong(span, message.to_owned()));
    }
    Ok(definition)
}

/// The file that is read, for errors.
struct Place<'t> {
    text: &'t str,
    path: &'t Path,
}

impl Place<'_> {
    fn wrong(&self, span: Range<usize>, message: String) -> RulesError {
        let (line, column) = position(self.text, span.start);
        RulesError::Wrong {
            path: self.path.to_owned(),
            line,
            column,
            message,
        }
    }

    fn expected(&self, key: &str, expected: &str, span: Range<usize>) -> RulesError {
        let written = self.text.get(span.clone()).unwrap_or_default();
        self.wrong(
            span,
            format!("'{written}' is no value for {key}: expected {expected}"),
        )
    }

    /// The entries of a table in their order, their names checked; `_` counts as `-`.
    fn entries<'v>(
        &self,
        table: DeTable<'v>,
        of: &str,
        known: &[&'static str],
    ) -> Result<Entries<'v>, RulesError> {
        let mut entries: Vec<_> = table.into_iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let mut named: Entries<'v> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let written = key.get_ref().to_string();
            let mut name = written.replace('_', "-");
            if name == "anonymize" {
                name = "anonymise".to_owned();
            }
            let Some(found) = known.iter().find(|known| **known == name) else {
                let meant = nearest(&name.to_lowercase(), known.iter().copied());
                let rest = match meant {
                    Some(meant) => format!(", did you mean '{meant}'?"),
                    None => format!("; it has {}", known.join(", ")),
                };
                let message = format!("{of} has no key '{written}'{rest}");
                return Err(self.wrong(key.span(), message));
            };
            if named.iter().any(|(earlier, _)| earlier == found) {
                return Err(self.wrong(key.span(), format!("'{found}' is given twice")));
            }
            named.push((*found, value));
        }
        Ok(named)
    }

    fn tables<'v, T>(
        &self,
        key: &str,
        most: usize,
        value: Spanned<DeValue<'v>>,
        mut read: impl FnMut(usize, (DeTable<'v>, Range<usize>)) -> Result<T, RulesError>,
    ) -> Result<Vec<T>, RulesError> {
        let span = value.span();
        let expected = || format!("{key}s are tables; write [[{key}]] with double brackets");
        let DeValue::Array(array) = value.into_inner() else {
            return Err(self.wrong(span, expected()));
        };
        if array.len() > most {
            return Err(self.wrong(span, format!("there are at most {most} {key}s")));
        }
        let mut all = Vec::with_capacity(array.len());
        for (index, one) in array.into_iter().enumerate() {
            let span = one.span();
            let DeValue::Table(table) = one.into_inner() else {
                return Err(self.wrong(span, expected()));
            };
            all.push(read(index + 1, (table, span))?);
        }
        Ok(all)
    }

    /// The name that the table gives itself, or its number.
    fn name(&self, number: usize, entries: &Entries<'_>) -> Result<Box<str>, RulesError> {
        let Some((_, value)) = entries.iter().find(|(name, _)| *name == "name") else {
            return Ok(number.to_string().into());
        };
        let name = self.text_of("name", value)?;
        let is_plain = |c: char| !c.is_control() && c != '"' && c != '\\';
        let is_name =
            !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain);
        if !is_name {
            let expected = format!(
                "up to {NAME_BYTES_MAX} bytes, without quotes and backslashes: metrics carry it"
            );
            return Err(self.expected("name", &expected, value.span()));
        }
        Ok(name.into())
    }

    fn are_distinct<'n>(
        &self,
        what: &str,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<(), RulesError> {
        let mut seen: Vec<&str> = Vec::new();
        for name in names {
            if seen.contains(&name) {
                let message = format!(
                    "two {what} are called '{name}', and could not be told apart; those without a \
                     name are called by their number"
                );
                let quoted = self.text.rfind(&format!("\"{name}\"")).unwrap_or(0);
                return Err(self.wrong(quoted..quoted, message));
            }
            seen.push(name);
        }
        Ok(())
    }

    /// The filter of a table, as it is written and compiled.
    fn filter(
        &self,
        entries: &Entries<'_>,
    ) -> Result<(Option<String>, Option<Matcher>), RulesError> {
        let Some((_, value)) = entries.iter().find(|(name, _)| *name == "where") else {
            return Ok((None, None));
        };
        let text = self.text_of("where", value)?;
        let filter = query::parse(&text).map_err(|error| {
            let marked = error.underline(&text);
            self.wrong(value.span(), format!("{error}\n{marked}"))
        })?;
        let matcher =
            Matcher::new(&filter).map_err(|error| self.wrong(value.span(), error.to_string()))?;
        let matcher = (!matcher.is_all()).then_some(matcher);
        Ok((Some(text), matcher))
    }

    /// Whether rules may name it.
    fn is_field(
        &self,
        name: &str,
        span: Range<usize>,
        may_be_line: bool,
    ) -> Result<(), RulesError> {
        let message = match name {
            "" => "a field has a name".to_owned(),
            name if name.len() > FIELD_NAME_BYTES_MAX => {
                format!("a field's name has at most {FIELD_NAME_BYTES_MAX} bytes")
            }
            name if RESERVED.contains(&name) => {
                format!("'{name}' is no field: no rule can change it")
            }
            LINE if !may_be_line => {
                format!("'{LINE}' is the line; name its fields, or the message '{MESSAGE}'")
            }
            _ => return Ok(()),
        };
        Err(self.wrong(span, message))
    }

    fn text_of(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<String, RulesError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(self.expected(key, "a text in quotes", value.span())),
        }
    }

    fn truth(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<bool, RulesError> {
        match value.get_ref() {
            DeValue::Boolean(truth) => Ok(*truth),
            _ => Err(self.expected(key, "true or false", value.span())),
        }
    }

    fn whole(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<i64, RulesError> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number.ok_or_else(|| self.expected(key, "a whole number", value.span()))
    }

    /// A text that `parse` gives a meaning.
    fn amount<T, E: std::fmt::Display>(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T, RulesError> {
        let text = self.text_of(key, value)?;
        parse(&text)
            .map_err(|error| self.expected(key, &format!("an amount; {error}"), value.span()))
    }

    fn texts(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Vec<(String, Range<usize>)>, RulesError> {
        let expected = "a list of names in quotes";
        let DeValue::Array(texts) = value.get_ref() else {
            return Err(self.expected(key, expected, value.span()));
        };
        let texts = texts.iter().map(|text| match text.get_ref() {
            DeValue::String(name) => Ok((name.to_string(), text.span())),
            _ => Err(self.expected(key, expected, text.span())),
        });
        texts.collect()
    }
}
