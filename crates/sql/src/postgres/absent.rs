//! Questions for what a Postgres has and nothing here: indexes, constraints and the like.
//!
//! Clients ask for them with functions and types that the engine has not. A select that joins a table without rows has no
//! rows either, whatever it computes of them: it becomes a select of as many nulls, and of no row.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, Join, JoinOperator, ObjectName, ObjectNamePart, Query, SelectItem,
    SetExpr, TableFactor, TableWithJoins, Value, Visit, Visitor,
};

use super::catalog::{self, PG_CATALOG};
use super::names::column_name;

/// Aggregates, which have a row also of no rows.
const AGGREGATES: [&str; 9] = [
    "count",
    "sum",
    "min",
    "max",
    "avg",
    "array_agg",
    "string_agg",
    "bool_or",
    "bool_and",
];

/// Makes the selects of a query that have no rows selects of nothing. True if there was one.
pub(super) fn without_rows(body: &mut SetExpr) -> bool {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            let (left, right) = (without_rows(left), without_rows(right));
            left || right
        }
        SetExpr::Select(select) => {
            if !reads_nothing(&select.from) || select.projection.iter().any(gathers) {
                return false;
            }
            let names: Option<Vec<Ident>> = select.projection.iter().map(name_of).collect();
            let Some(names) = names else {
                return false;
            };
            select.projection = nulls(names);
            select.from.clear();
            select.distinct = None;
            select.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
            select.having = None;
            select.selection = Some(Expr::Value(Value::Boolean(false).into()));
            true
        }
        _ => false,
    }
}

/// A null for each name. The engine wants each name once.
fn nulls(names: Vec<Ident>) -> Vec<SelectItem> {
    let mut taken: Vec<String> = Vec::new();
    let null = |mut alias: Ident| {
        if taken.contains(&alias.value) {
            alias = Ident::with_quote('"', format!("{}_{}", alias.value, taken.len()));
        }
        taken.push(alias.value.clone());
        let expr = Expr::Value(Value::Null.into());
        SelectItem::ExprWithAlias { expr, alias }
    };
    names.into_iter().map(null).collect()
}

/// True if a query was made one of nothing.
pub(super) fn is_nothing(query: &Query) -> bool {
    match &*query.body {
        SetExpr::Select(select) => {
            let is_false = Expr::Value(Value::Boolean(false).into());
            select.from.is_empty() && select.selection.as_ref() == Some(&is_false)
        }
        _ => false,
    }
}

/// True if tables are joined of which one has no rows.
fn reads_nothing(from: &[TableWithJoins]) -> bool {
    let is_inner = |join: &Join| {
        matches!(
            join.join_operator,
            JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_)
        )
    };
    let is_left = |join: &Join| {
        matches!(
            join.join_operator,
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_)
        )
    };
    from.iter().any(|tables| {
        let is_known = tables
            .joins
            .iter()
            .all(|join| is_inner(join) || is_left(join));
        let mut joined = tables.joins.iter().filter(|join| is_inner(join));
        let is_joined = joined.any(|join| is_empty(&join.relation));
        is_known && (is_joined || is_empty(&tables.relation))
    })
}

fn is_empty(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Table {
            name, args: None, ..
        } => table_of_catalog(name).is_some_and(catalog::is_empty),
        // With its schema it is called for lists of the catalog, which are all null.
        TableFactor::Table { name, .. } => table_of_catalog(name) == Some("unnest"),
        TableFactor::Derived { subquery, .. } => match &*subquery.body {
            SetExpr::Select(select) => {
                reads_nothing(&select.from) && !select.projection.iter().any(gathers)
            }
            _ => false,
        },
        _ => false,
    }
}

/// The name of a table of the catalog, if it is one.
pub(super) fn table_of_catalog(name: &ObjectName) -> Option<&str> {
    let mut parts = name.0.iter().rev().filter_map(ObjectNamePart::as_ident);
    let table = &*parts.next()?.value;
    let is_of_catalog = match parts.next() {
        Some(schema) => schema.value == PG_CATALOG,
        None => table.starts_with("pg_"),
    };
    is_of_catalog.then_some(table)
}

/// True if a column is an aggregate, or may be one. Those of subqueries are none of it.
fn gathers(item: &SelectItem) -> bool {
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
        return true;
    };
    is_aggregate(expr)
}

/// True if an expression has an aggregate outside of its subqueries.
pub(super) fn is_aggregate(expr: &Expr) -> bool {
    Visit::visit(expr, &mut AggregateSearch::default()).is_break()
}

/// Looks for aggregates.
#[derive(Default)]
struct AggregateSearch {
    /// The number of subqueries around.
    depth: usize,
}

impl Visitor for AggregateSearch {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expr else {
            return ControlFlow::Continue(());
        };
        let name = function.name.0.last().and_then(ObjectNamePart::as_ident);
        let name = name.map(|name| name.value.to_ascii_lowercase());
        if self.depth == 0 && name.is_some_and(|name| AGGREGATES.contains(&&*name)) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// The name of a column; none of all columns.
fn name_of(item: &SelectItem) -> Option<Ident> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.clone()),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.clone()),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => names.last().cloned(),
        SelectItem::UnnamedExpr(expr) => {
            let name = column_name(expr, 0).map_or_else(|| expr.to_string(), |name| name.value);
            Some(Ident::with_quote('"', name))
        }
        _ => None,
    }
}
