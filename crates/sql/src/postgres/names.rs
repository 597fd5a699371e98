//! Names of the columns of a result, as Postgres gives them.

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, Select, SelectItem, TrimWhereField,
};

/// The character behind a name that several columns have, and before a number: the engine wants each name once. It is of the
/// private ones, so that no column has it.
const MARK: char = '\u{e000}';

/// Casts and parentheses that are looked through for a name.
const DEPTH_MAX: usize = 8;

/// The name of a column as clients see it.
pub fn shown_name(name: &str) -> &str {
    name.split(MARK).next().unwrap_or(name)
}

/// Names the columns of a result as Postgres does: by their functions, or by the columns that are cast.
pub(super) fn name_as_postgres(select: &mut Select) {
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
    let is_wildcard = |item: &SelectItem| {
        matches!(
            item,
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
        )
    };
    let has_wildcard = select.projection.iter().any(is_wildcard);
    let mut taken: Vec<String> = Vec::new();
    for item in &mut select.projection {
        let expr = match item {
            SelectItem::UnnamedExpr(expr) => expr,
            SelectItem::ExprWithAlias { alias, .. } => {
                alias.value = unique(&alias.value, &mut taken);
                continue;
            }
            _ => continue,
        };
        let is_column = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        // An alias would hide the column that the statement groups by.
        if matches!(expr, Expr::Cast { .. }) && is_grouped {
            continue;
        }
        let Some(name) = column_name(expr, 0) else {
            continue;
        };
        if is_column && has_wildcard {
            // The other columns may have the name, too.
            taken.push(name.value.clone());
        }
        let alias = unique(&name.value, &mut taken);
        if !is_column || alias != name.value {
            let (expr, alias) = (expr.clone(), Ident::with_quote('"', alias));
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
}

/// A name that no column before has.
fn unique(name: &str, taken: &mut Vec<String>) -> String {
    let count = taken.iter().filter(|other| *other == name).count();
    taken.push(name.to_owned());
    if count == 0 {
        name.to_owned()
    } else {
        format!("{name}{MARK}{count}")
    }
}

/// The name that Postgres gives a column.
pub(super) fn column_name(expr: &Expr, depth: usize) -> Option<Ident> {
    match expr {
        Expr::Identifier(name) => Some(name.clone()),
        Expr::CompoundIdentifier(names) => names.last().cloned(),
        Expr::Function(function) => {
            let name = function.name.0.last()?.as_ident()?;
            Some(Ident::new(name.value.to_ascii_lowercase()))
        }
        Expr::Cast { expr, .. } | Expr::Nested(expr) if depth < DEPTH_MAX => {
            column_name(expr, depth + 1)
        }
        other => own_name(other, depth).map(Ident::new),
    }
}

/// The name of a form that is no function by its syntax.
fn own_name(expr: &Expr, depth: usize) -> Option<&'static str> {
    Some(match expr {
        Expr::Extract { .. } => "extract",
        Expr::Case { .. } => "case",
        Expr::Substring { .. } => "substring",
        Expr::Position { .. } => "position",
        Expr::Overlay { .. } => "overlay",
        Expr::Floor { .. } => "floor",
        Expr::Ceil { .. } => "ceil",
        Expr::AtTimeZone { .. } => "timezone",
        Expr::Exists { .. } => "exists",
        Expr::Array(_) => "array",
        Expr::Trim { trim_where, .. } => match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            Some(TrimWhereField::Both) | None => "btrim",
        },
        Expr::Value(_)
        | Expr::BinaryOp { .. }
        | Expr::UnaryOp { .. }
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::Like { .. }
        | Expr::InList { .. }
        | Expr::Between { .. }
            if depth == 0 =>
        {
            "?column?"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_not_shown() {
        let mut taken = Vec::new();
        let names: Vec<String> = (0..3).map(|_| unique("max", &mut taken)).collect();
        assert_eq!(
            names.iter().collect::<std::collections::HashSet<_>>().len(),
            3
        );
        assert!(
            names.iter().all(|name| shown_name(name) == "max"),
            "{names:?}"
        );
    }
}
