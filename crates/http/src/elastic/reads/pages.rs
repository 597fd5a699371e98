//! The next page of a scroll, and points in time. Both have all that they need in their ids: closing one has nothing to
//! free, and none expires.

use hyper::Method;
use logpond_engine::query::Output;
use serde_json::{Value as Json, json};

use super::indices::IndexExpression;
use super::json::{bad, only, optional, texts};
use super::request::{
    AnswerOptions, PARAMETERS, PointInTime, SearchRequest, check_keep_alive, read_body,
};
use super::{Answer, Call, search};
use crate::App;
use crate::error::ApiError;

/// `_search/scroll`: the next page, or the end of a scroll.
pub(super) fn scroll(app: &App, call: &Call, out: &mut Output) -> Result<Answer, ApiError> {
    call.params.only(&PARAMETERS)?;
    let body = read_body(&call.body)?;
    only(&body, &["scroll_id", "scroll"], "scroll")?;
    let given = body
        .get("scroll_id")
        .map(|id| texts(id, "scroll_id"))
        .transpose()?;
    let named = call.names.first().cloned();
    let param = call.params.one("scroll_id")?.map(str::to_owned);
    let ids = given.or_else(|| named.or(param).map(|id| vec![id]));
    if call.method == Method::DELETE {
        let freed = ids.map_or(0, |ids| ids.len());
        return Ok(json!({ "succeeded": true, "num_freed": freed }).into());
    }
    let keep_alive = optional(&body, "scroll")?;
    check_keep_alive(keep_alive.as_deref().or(call.params.one("scroll")?))?;
    let id = ids.and_then(|ids| ids.into_iter().next());
    let id = id.ok_or_else(|| bad("[scroll_id] is missing"))?;
    let options = AnswerOptions::read(&call.params)?;
    let request = SearchRequest::of_scroll(&id, options, call.now)?;
    Ok(search::run(app, &request, out)?.into())
}

/// `_pit`: opens a point in time, or closes one.
pub(super) fn point_in_time(call: &Call) -> Result<Answer, ApiError> {
    call.params.only(&PARAMETERS)?;
    let body = read_body(&call.body)?;
    if call.method == Method::DELETE {
        only(&body, &["id"], "pit")?;
        let id = optional(&body, "id")?;
        let freed = usize::from(id.is_some());
        return Ok(json!({ "succeeded": true, "num_freed": freed }).into());
    }
    // A condition of the point itself would be one that its searches do not show.
    only(&body, &[], "pit")?;
    check_keep_alive(call.params.one("keep_alive")?)?;
    IndexExpression::read(call.index())?;
    let point = PointInTime::new(call.index(), call.now);
    let shards: Json = json!({ "total": 1, "successful": 1, "skipped": 0, "failed": 0 });
    Ok(json!({ "id": point.text, "_shards": shards }).into())
}
