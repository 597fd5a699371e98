//! The dialect of Postgres as the engine reads it.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Array, BinaryOperator, CastKind, CharacterLength, DataType, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, LimitClause, ObjectName,
    ObjectNamePart, Query, SelectItem, SetExpr, Statement as Ast, TableAlias, TableAliasColumnDef,
    TableFactor, TableWithJoins, UnaryOperator, Value, VisitMut, VisitorMut,
};

use super::catalog::PG_CATALOG;
use super::conversions::AT_TIME_ZONE;
use super::functions::{CLASS_NAME, REGCLASS, REGTYPE};
use super::names::name_as_postgres;
use super::{SCHEMA, absent};

/// Makes a statement in the dialect of Postgres one of the engine.
pub(crate) fn rewrite(statement: &mut Statement) {
    match statement {
        Statement::Statement(ast) => {
            if let Ast::Query(query) = &mut **ast
                && let SetExpr::Select(select) = &mut *query.body
            {
                name_as_postgres(select);
            }
            // Nothing breaks off.
            let _ = VisitMut::visit(&mut **ast, &mut Rewriting);
        }
        Statement::Explain(explain) => rewrite(&mut explain.statement),
        _ => {}
    }
}

/// Rewrites the parts of a statement.
struct Rewriting;

impl VisitorMut for Rewriting {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        if let [ObjectNamePart::Identifier(name)] = &relation.0[..]
            && name.value.to_ascii_lowercase().starts_with("pg_")
        {
            let schema = ObjectNamePart::Identifier(Ident::new(PG_CATALOG));
            relation.0.insert(0, schema);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let Some(limit) = limit_of(query) {
            query.limit_clause = Some(limit);
            query.fetch = None;
        }
        if absent::without_rows(&mut query.body) {
            // It may order by what is not selected any more.
            query.order_by = None;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table {
            name,
            args: Some(_),
            alias,
            ..
        } = factor
        {
            without_schema(name);
            name_series(name, alias);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(other) = rewritten(expr) {
            *expr = other;
        }
        ControlFlow::Continue(())
    }
}

/// The limit that `FETCH NEXT n ROWS ONLY` is, if there is no other one.
fn limit_of(query: &Query) -> Option<LimitClause> {
    let fetch = query.fetch.as_ref();
    let fetch = fetch.filter(|fetch| !fetch.with_ties && !fetch.percent)?;
    let offset = match &query.limit_clause {
        None => None,
        Some(LimitClause::LimitOffset {
            limit: None,
            offset,
            ..
        }) => offset.clone(),
        Some(_) => return None,
    };
    Some(LimitClause::LimitOffset {
        limit: Some(fetch.quantity.clone().unwrap_or_else(|| number(1))),
        offset,
        limit_by: Vec::new(),
    })
}

/// Names the only column of a series by its alias, or by the function.
fn name_series(name: &ObjectName, alias: &mut Option<TableAlias>) {
    let function = name.0.last().and_then(ObjectNamePart::as_ident);
    let Some(function) = function.filter(|name| name.value.eq_ignore_ascii_case("generate_series"))
    else {
        return;
    };
    let alias = alias.get_or_insert_with(|| TableAlias {
        explicit: true,
        name: function.clone(),
        columns: Vec::new(),
        at: None,
    });
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef {
            name: alias.name.clone(),
            data_type: None,
        });
    }
}

/// True if a query splits the search path: Grafana looks by it for the schemas that need not be named.
fn splits_search_path(query: &Query) -> bool {
    let SetExpr::Select(select) = &*query.body else {
        return false;
    };
    let is_split = |tables: &TableWithJoins| {
        let TableFactor::Table {
            name,
            args: Some(arguments),
            ..
        } = &tables.relation
        else {
            return false;
        };
        let of_path = |argument: &FunctionArg| argument.to_string().contains("search_path");
        name.to_string().eq_ignore_ascii_case("string_to_array")
            && arguments.args.iter().any(of_path)
    };
    select.from.iter().any(is_split)
}

/// The expression for a form that only Postgres has.
fn replaced(expr: &Expr) -> Option<Expr> {
    Some(match expr {
        Expr::Collate { expr, .. } => (**expr).clone(),
        Expr::AtTimeZone {
            timestamp,
            time_zone,
        } => {
            let arguments = vec![(**timestamp).clone(), (**time_zone).clone()];
            call_with(AT_TIME_ZONE, arguments)
        }
        Expr::InSubquery {
            expr,
            subquery,
            negated,
        } if splits_search_path(subquery) => Expr::InList {
            expr: expr.clone(),
            list: vec![text_value(SCHEMA)],
            negated: *negated,
        },
        Expr::Substring {
            expr,
            substring_from: Some(from),
            substring_for: None,
            ..
        } if literal(from).is_some() => {
            let found = call_with("regexp_match", vec![(**expr).clone(), (**from).clone()]);
            let first = number(1);
            call_with("array_element", vec![found, first])
        }
        Expr::BinaryOp {
            left,
            op: BinaryOperator::PGStartsWith,
            right,
        } => call_with("starts_with", vec![(**left).clone(), (**right).clone()]),
        // SQLite's way to keep a column out of its indexes.
        Expr::UnaryOp {
            op: UnaryOperator::Plus,
            expr,
        } if matches!(**expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) => {
            (**expr).clone()
        }
        _ => return None,
    })
}

/// The expression of the engine for one of Postgres, if it is another.
fn rewritten(expr: &mut Expr) -> Option<Expr> {
    if let Some(other) = replaced(expr) {
        return Some(other);
    }
    match expr {
        Expr::Subquery(query) => {
            if absent::is_nothing(query) {
                return Some(Expr::Value(Value::Null.into()));
            }
            take_one(query);
            None
        }
        Expr::BinaryOp { op, .. } => {
            if let BinaryOperator::PGCustomBinaryOperator(parts) = op {
                *op = operator(parts.last()?)?;
            }
            None
        }
        Expr::Function(function) => function_of(function),
        Expr::Like {
            pattern,
            escape_char,
            ..
        }
        | Expr::ILike {
            pattern,
            escape_char,
            ..
        } => {
            if let Some(text) = quoted_pattern(pattern) {
                **pattern = text;
            }
            let escape = escape_char.take()?;
            if let Some(escape) = text_of(&escape.value).filter(|escape| *escape != "\\") {
                **pattern = escaped_by_backslash(pattern, escape);
            }
            None
        }
        Expr::Cast {
            expr, data_type, ..
        } => cast(expr, data_type),
        Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => {
            if let Some(list) = list_of(right) {
                **right = list;
            }
            None
        }
        _ => None,
    }
}

/// An operator that was written with its schema.
fn operator(name: &str) -> Option<BinaryOperator> {
    Some(match name {
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "~~*" => BinaryOperator::PGILikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "!~~*" => BinaryOperator::PGNotILikeMatch,
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        ">" => BinaryOperator::Gt,
        "<=" => BinaryOperator::LtEq,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "||" => BinaryOperator::StringConcat,
        _ => return None,
    })
}

/// A function without the schema that all functions have; a list of the rows of a subquery as an aggregate.
fn function_of(function: &mut Function) -> Option<Expr> {
    without_schema(&mut function.name);
    let name = function.name.0.last()?.as_ident()?;
    if name.value.eq_ignore_ascii_case("array")
        && let FunctionArguments::Subquery(query) = &mut function.args
    {
        if absent::is_nothing(query) {
            return Some(list(Vec::new()));
        }
        gather(query);
        let query = query.clone();
        return Some(Expr::Subquery(query));
    }
    let lower = name.value.to_ascii_lowercase();
    if lower == "localtimestamp" {
        let now = call_with("now", Vec::new());
        return Some(call_with(AT_TIME_ZONE, vec![now, text_value("UTC")]));
    }
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let arguments = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    let arguments = arguments.collect::<Option<Vec<Expr>>>()?;
    match (&*lower, &arguments[..]) {
        ("every", _) => {
            function.name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new("bool_and"))]);
            None
        }
        ("array_upper", _) => Some(cast_to(
            call_with("array_length", arguments),
            DataType::BigInt(None),
        )),
        // Lists begin at 1, and empty ones nowhere: the length of no list is null.
        ("array_lower", _) => {
            let length = call_with("array_length", arguments);
            let zero = number(0);
            let sign = cast_to(call_with("signum", vec![length]), DataType::BigInt(None));
            Some(call_with("nullif", vec![sign, zero]))
        }
        ("date_trunc", [unit, time, zone]) => {
            let there = call_with(AT_TIME_ZONE, vec![time.clone(), zone.clone()]);
            let begin = call_with("date_trunc", vec![unit.clone(), there]);
            Some(call_with(AT_TIME_ZONE, vec![begin, zone.clone()]))
        }
        _ => None,
    }
}

/// Removes the schema that all functions have.
fn without_schema(name: &mut ObjectName) {
    if let [
        ObjectNamePart::Identifier(schema),
        ObjectNamePart::Identifier(_),
    ] = &name.0[..]
        && [PG_CATALOG, "information_schema"].contains(&&*schema.value)
    {
        name.0.remove(0);
    }
}

/// Makes one list of the only column of a query.
fn gather(query: &mut Query) {
    if let SetExpr::Select(select) = &mut *query.body
        && let [item] = &mut select.projection[..]
    {
        let expr = match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr.clone(),
            _ => return,
        };
        *item = SelectItem::UnnamedExpr(call("array_agg", expr));
        query.order_by = None;
    }
}

/// Makes a subquery of the catalog one that has one row for sure: the engine wants that of subqueries that name columns of
/// others, and numbers of objects are unique here.
fn take_one(query: &mut Query) {
    let SetExpr::Select(select) = &mut *query.body else {
        return;
    };
    let is_of_catalog = |factor: &TableFactor| match factor {
        TableFactor::Table { name, .. } => absent::table_of_catalog(name).is_some(),
        _ => false,
    };
    let mut tables = select.from.iter();
    let are_of_catalog = tables.all(|tables| is_of_catalog(&tables.relation));
    if let [item] = &mut select.projection[..]
        && !select.from.is_empty()
        && are_of_catalog
    {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            return;
        };
        if !absent::is_aggregate(expr) {
            *item = SelectItem::UnnamedExpr(call("max", expr.clone()));
            query.order_by = None;
        }
    }
}

/// A call of a function with one argument.
fn call(name: &str, argument: Expr) -> Expr {
    call_with(name, vec![argument])
}

/// A call of a function.
fn call_with(name: &str, arguments: Vec<Expr>) -> Expr {
    let unnamed = |argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument));
    Expr::Function(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::new(name))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.into_iter().map(unnamed).collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// A pattern that is escaped by a backslash, of one that is escaped by another character: the engine has only that.
fn escaped_by_backslash(pattern: &Expr, escape: &str) -> Expr {
    let escaped = vec![pattern.clone(), text_value("\\"), text_value("\\\\")];
    let doubled = call_with("replace", escaped);
    if escape.is_empty() {
        return doubled;
    }
    call_with(
        "replace",
        vec![doubled, text_value(escape), text_value("\\")],
    )
}

/// A pattern in double quotes as a text: SQLite takes it as one, and no column has such a name.
fn quoted_pattern(pattern: &Expr) -> Option<Expr> {
    match pattern {
        Expr::Identifier(name) if name.quote_style == Some('"') && name.value.contains('%') => {
            Some(text_value(&name.value))
        }
        _ => None,
    }
}

/// A constant number.
fn number(number: u64) -> Expr {
    Expr::Value(Value::Number(number.to_string(), false).into())
}

/// A cast that is written as one.
fn cast_to(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    }
}

/// A constant text.
fn text_value(text: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(text.to_owned()).into())
}

/// The text of a constant.
fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
        _ => None,
    }
}

/// The text of an expression that is a constant.
fn literal(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => text_of(&value.value),
        Expr::Nested(inner) => literal(inner),
        _ => None,
    }
}

/// True if an expression is a number of an object that was found by its name.
fn is_number_of_name(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else {
        return false;
    };
    let name = function.name.0.last().and_then(ObjectNamePart::as_ident);
    name.is_some_and(|name| [REGCLASS, REGTYPE, CLASS_NAME].contains(&&*name.value))
}

/// A cast to a type that only Postgres has.
fn cast(expr: &Expr, data_type: &mut DataType) -> Option<Expr> {
    if let DataType::Array(_) = data_type
        && let Some(list) = list_of(expr)
    {
        return Some(cast_to(list, data_type.clone()));
    }
    if let DataType::Varchar(Some(length)) | DataType::CharacterVarying(Some(length)) = data_type
        && let CharacterLength::IntegerLength { length, .. } = length
    {
        let length = number(*length);
        let text = cast_to(expr.clone(), DataType::Text);
        return Some(call_with("left", vec![text, length]));
    }
    let name = type_name(data_type)?;
    if name == "json" || name == "jsonb" || name == "uuid" {
        *data_type = DataType::Text;
        return None;
    }
    match &*name {
        // The text of a table's number is its name.
        "regclass" if literal(expr).is_some() => Some(call(REGCLASS, expr.clone())),
        "regclass" if is_number_of_name(expr) => Some(expr.clone()),
        "regclass" => Some(call(CLASS_NAME, expr.clone())),
        "regtype" if literal(expr).is_some() => Some(call(REGTYPE, expr.clone())),
        "regtype" => Some(call("format_type", expr.clone())),
        "oid" => match expr {
            Expr::Function(function) if is_number_of_name(expr) => {
                let name = function.name.0.last().and_then(ObjectNamePart::as_ident)?;
                // The name of an expression that is no number: it is a name itself.
                if name.value == CLASS_NAME {
                    let FunctionArguments::List(list) = &function.args else {
                        return None;
                    };
                    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))] = &list.args[..]
                    else {
                        return None;
                    };
                    return Some(call(REGCLASS, inner.clone()));
                }
                Some(expr.clone())
            }
            _ => {
                *data_type = DataType::BigInt(None);
                None
            }
        },
        "xid" | "cid" => {
            *data_type = DataType::BigInt(None);
            None
        }
        "name" | "char" | "cstring" | "regproc" | "regprocedure" | "regnamespace" | "regrole"
        | "bpchar" | "aclitem" | "unknown" => {
            *data_type = DataType::Text;
            None
        }
        _ => None,
    }
}

/// The name of a type that the engine may not have, without its schema.
fn type_name(data_type: &mut DataType) -> Option<String> {
    match data_type {
        DataType::Regclass => Some("regclass".to_owned()),
        DataType::JSON => Some("json".to_owned()),
        DataType::JSONB => Some("jsonb".to_owned()),
        DataType::Uuid => Some("uuid".to_owned()),
        DataType::Custom(name, _) => {
            let name = name.0.last()?.as_ident()?.value.to_ascii_lowercase();
            let plain = plain_type(&name);
            if let Some(plain) = plain {
                *data_type = plain;
                return None;
            }
            Some(name)
        }
        _ => None,
    }
}

/// A type that is written with its schema, as `pg_catalog.int4`.
fn plain_type(name: &str) -> Option<DataType> {
    Some(match name {
        "text" | "varchar" => DataType::Text,
        "int2" => DataType::SmallInt(None),
        "int4" => DataType::Integer(None),
        "int8" => DataType::BigInt(None),
        "float4" => DataType::Real,
        "float8" => DataType::DoublePrecision,
        "bool" => DataType::Boolean,
        _ => return None,
    })
}

/// The list that a text such as `{a,b}` is.
fn list_of(expr: &Expr) -> Option<Expr> {
    let inner = match expr {
        Expr::Cast { expr, .. } => expr,
        Expr::Nested(inner) => return list_of(inner),
        other => other,
    };
    let text = literal(inner)?.trim();
    let items = text.strip_prefix('{')?.strip_suffix('}')?;
    let value = |item: &str| {
        let item = item.trim().trim_matches('"');
        Expr::Value(Value::SingleQuotedString(item.to_owned()).into())
    };
    let elem = match items.trim() {
        "" => Vec::new(),
        items => items.split(',').map(value).collect(),
    };
    Some(list(elem))
}

fn list(elem: Vec<Expr>) -> Expr {
    Expr::Array(Array { elem, named: true })
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParserBuilder;
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;

    use super::*;

    fn rewritten_text(text: &str) -> String {
        let parser = DFParserBuilder::new(text).with_dialect(&PostgreSqlDialect {});
        let mut statements = parser.build().unwrap().parse_statements().unwrap();
        let mut statement = statements.pop_front().unwrap();
        rewrite(&mut statement);
        statement.to_string()
    }

    #[test]
    fn the_dialect_is_read() {
        for (text, expected) in [
            (
                "SELECT a FROM pg_class",
                "SELECT a FROM pg_catalog.pg_class",
            ),
            (
                "SELECT pg_catalog.version()",
                "SELECT version() AS \"version\"",
            ),
            (
                "SELECT a OPERATOR(pg_catalog.~) '^(logs)$' COLLATE pg_catalog.default",
                "SELECT a ~ '^(logs)$' AS \"?column?\"",
            ),
            ("SELECT 'logs'::regclass", "SELECT logpond_regclass('logs')"),
            (
                "SELECT a::pg_catalog.regclass::text AS x",
                "SELECT logpond_class_name(a)::TEXT AS x",
            ),
            ("SELECT a::oid AS x", "SELECT a::BIGINT AS x"),
            (
                "SELECT a, (SELECT x(d) FROM pg_attrdef d WHERE d.b = a) AS b FROM pg_class",
                "SELECT a, NULL AS b FROM pg_catalog.pg_class",
            ),
            (
                "SELECT i.a, pg_catalog.x(i.b) FROM pg_class c JOIN pg_catalog.pg_index i ON true ORDER BY i.c",
                "SELECT NULL AS a, NULL AS \"x\" WHERE false",
            ),
            (
                "SELECT r.a FROM (SELECT x(i.b) AS a, i.c AS k FROM pg_index i) r WHERE r.n = (r.k).x",
                "SELECT NULL AS a WHERE false",
            ),
            (
                "SELECT count(*) FROM pg_index",
                "SELECT count(*) AS \"count\" FROM pg_catalog.pg_index",
            ),
            (
                "SELECT a FROM logs WHERE +host LIKE \"%.example\"",
                "SELECT a FROM logs WHERE host LIKE '%.example'",
            ),
            (
                "SELECT 1 WHERE a = ANY('{r,v}')",
                "SELECT 1 AS \"?column?\" WHERE a = ANY(ARRAY['r', 'v'])",
            ),
        ] {
            assert_eq!(rewritten_text(text), expected, "{text}");
        }
    }
}
