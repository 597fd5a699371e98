//! Searches of Elasticsearch: pages by `search_after`, and counts.

use serde_json::{Value, json};

use super::{Inquiry, Interface, Rows, Told, complete, incomplete, parse};
use crate::run::Outcome;

pub(super) const SEARCH: Interface = Interface {
    name: "elasticsearch",
    is_one_view: false,
    can_be_complete: true,
    ask: search,
};

pub(super) const COUNT: Interface = Interface {
    name: "elasticsearch count",
    is_one_view: true,
    can_be_complete: true,
    ask: count,
};

/// Hits of a page: so few that several pages are needed.
const PAGE_HITS: usize = 150;

/// An answer, or the reason of a node that refuses to give an incomplete one.
fn post(inquiry: &Inquiry<'_>, target: &str, body: &Value) -> Outcome<Result<Value, String>> {
    let headers = [("content-type", "application/json")];
    let (status, text) = inquiry.send("POST", target, &headers, &body.to_string())?;
    match status {
        200 => {
            let answer = parse(&text)?;
            if answer["_shards"]["failed"] == 0 {
                Ok(Ok(answer))
            } else {
                Ok(Err(answer["_shards"].to_string()))
            }
        }
        503 => Ok(Err(text)),
        _ => Err(format!("{target}: status {status}: {text}")),
    }
}

fn search(inquiry: &mut Inquiry<'_>) -> Told {
    let mut rows = Rows::default();
    let filter = json!([
        {"term": {"client": inquiry.name()}},
        {"range": {"n": {"gte": inquiry.range.start, "lt": inquiry.range.end}}}
    ]);
    let mut body = json!({
        "size": PAGE_HITS, "sort": [{"n": "asc"}, {"@timestamp": "asc"}],
        "query": {"bool": {"filter": filter}}
    });
    loop {
        let answer = match post(inquiry, "/_search", &body)? {
            Ok(answer) => answer,
            Err(why) => return rows.answer(incomplete(why)),
        };
        let hits = answer["hits"]["hits"].as_array();
        let hits = hits.ok_or_else(|| format!("no hits in {answer}"))?;
        for hit in hits {
            rows.add_object(inquiry, &hit["_source"], "message")?;
        }
        match hits.last() {
            Some(hit) if hits.len() >= PAGE_HITS => body["search_after"] = hit["sort"].clone(),
            _ => return rows.answer(complete()),
        }
        inquiry.place = (inquiry.whom)();
    }
}

fn count(inquiry: &mut Inquiry<'_>) -> Told {
    let body = json!({"query": {"term": {"client": inquiry.name()}}});
    match post(inquiry, "/_count", &body)? {
        Ok(answer) => {
            let count = answer["count"].as_u64();
            inquiry.count(count.ok_or("no count")?, complete())
        }
        Err(why) => inquiry.count(0, incomplete(why)),
    }
}
