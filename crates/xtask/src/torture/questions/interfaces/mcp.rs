//! Tools for assistants: `search` in pages by cursor, and `count`.

use serde_json::{Value, json};

use super::{Inquiry, Interface, Rows, Told, Trailer, complete, incomplete, parse};
use crate::run::Outcome;

pub(super) const SEARCH: Interface = Interface {
    name: "mcp search",
    is_one_view: false,
    can_be_complete: true,
    ask: search,
};

pub(super) const COUNT: Interface = Interface {
    name: "mcp count",
    is_one_view: true,
    can_be_complete: true,
    ask: count,
};

/// Rows of a page: so few that they fit into an answer.
const PAGE_ROWS: usize = 40;

/// The most records of a search.
const ROWS_MAX: u64 = 120;

/// The beginning of all ranges.
const START: &str = "1970-01-01T00:00:00Z";

/// The answer of a tool.
struct ToolAnswer {
    rows: Vec<Value>,
    cursor: Option<String>,
    trailer: Trailer,
}

fn call(inquiry: &Inquiry<'_>, tool: &str, arguments: &Value) -> Outcome<ToolAnswer> {
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}
    });
    let (status, text) = inquiry.send("POST", "/mcp", &headers, &body.to_string())?;
    if status != 200 {
        return Err(format!("/mcp: status {status}: {text}"));
    }
    let answer = parse(&text)?;
    let text = answer["result"]["content"][0]["text"].as_str();
    match text {
        Some(text) if answer["result"]["isError"] == false => read(text),
        _ => Err(format!("/mcp: {tool}: {answer}")),
    }
}

/// Reads the head of an answer, and the rows between its marks.
fn read(text: &str) -> Outcome<ToolAnswer> {
    let (head, data) = text.split_once("\n=== BEGIN ").unwrap_or((text, ""));
    let line = |name: &str| {
        head.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    let rows = data.lines().filter(|line| line.starts_with('{'));
    let rows = rows.map(parse).collect::<Outcome<Vec<Value>>>()?;
    let trailer = match line("complete") {
        Some("yes") if line("cut").is_none() => complete(),
        other => incomplete(format!("complete: {other:?}, cut: {:?}", line("cut"))),
    };
    let cursor = line("more").and_then(|more| more.split('"').nth(1));
    Ok(ToolAnswer {
        rows,
        cursor: cursor.map(str::to_owned),
        trailer,
    })
}

fn search(inquiry: &mut Inquiry<'_>) -> Told {
    let mut rows = Rows::default();
    let mut whole = complete();
    let start = inquiry.range.start;
    // The question is about all of the range, so that the answer about a part of it is not whole.
    let end = inquiry.range.end.min(start + ROWS_MAX);
    if end < inquiry.range.end {
        whole = incomplete("only the first records were asked for");
    }
    let query = format!("client={} n>={start} n<{end}", inquiry.name());
    let mut arguments = json!({"query": query, "from": START, "limit": PAGE_ROWS});
    loop {
        let page = call(inquiry, "search", &arguments)?;
        if !page.trailer.is_complete {
            whole = page.trailer;
        }
        for row in page.rows.iter().filter(|row| row.get("client").is_some()) {
            rows.add_object(inquiry, row, "_msg")?;
        }
        match page.cursor {
            Some(cursor) => arguments["cursor"] = json!(cursor),
            None => return rows.answer(whole),
        }
        inquiry.place = (inquiry.whom)();
    }
}

fn count(inquiry: &mut Inquiry<'_>) -> Told {
    let query = format!("client={}", inquiry.name());
    let answer = call(inquiry, "count", &json!({"query": query, "from": START}))?;
    let mut counts = answer.rows.iter().filter_map(|row| row["count"].as_u64());
    match (counts.next(), answer.trailer) {
        (Some(count), trailer) => inquiry.count(count, trailer),
        (None, trailer) if !trailer.is_complete => inquiry.count(0, trailer),
        (None, _) => Err("a complete answer has no count".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_between_marks() {
        let text = "complete: yes\nmore: call again with cursor=\"a_b\"\nThe lines {…\n\
                    === BEGIN 1f\n{\"n\":1}\n=== END 1f";
        let answer = read(text).expect("an answer");
        assert_eq!(answer.rows, [json!({"n": 1})]);
        assert_eq!(answer.cursor.as_deref(), Some("a_b"));
        assert!(answer.trailer.is_complete);
        assert!(
            !read("complete: no\n")
                .expect("an answer")
                .trailer
                .is_complete
        );
    }
}
