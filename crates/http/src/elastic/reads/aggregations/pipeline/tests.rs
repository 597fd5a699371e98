use serde_json::{Value as Json, json};

use super::super::tests::{aggregate, records, try_aggregate};

/// The buckets of a histogram by minutes with some pipelines within it: 2, 1, 0 and 1 records, whose `ms` add up to 30,
/// 30.5, nothing and nothing.
fn minutes(pipelines: Json) -> Result<Vec<Json>, String> {
    let mut within = json!({"s": {"sum": {"field": "ms"}}, "m": {"max": {"field": "ms"}}});
    for (name, body) in pipelines.as_object().unwrap() {
        within[name] = body.clone();
    }
    let body = json!({"h": {"date_histogram": {"field": "@timestamp", "fixed_interval": "1m"}, "aggs": within}});
    let found = try_aggregate(&body, &records()).map_err(|error| error.message)?;
    Ok(found["h"]["buckets"].as_array().unwrap().clone())
}

/// The values of a pipeline, of which one without an answer is "none".
fn values(pipeline: Json) -> Vec<Json> {
    let buckets = minutes(json!({"x": pipeline})).unwrap();
    let value = |bucket: &Json| match bucket.get("x") {
        Some(answer) => answer["value"].clone(),
        None => json!("none"),
    };
    buckets.iter().map(value).collect()
}

#[test]
fn pipelines_compute_values_of_buckets() {
    let none = || json!("none");
    let null = || Json::Null;
    let table = [
        (
            json!({"derivative": {"buckets_path": "_count"}}),
            vec![none(), json!(-1.0), json!(-1.0), json!(1.0)],
        ),
        (
            json!({"derivative": {"buckets_path": "s"}}),
            vec![none(), json!(0.5), null(), null()],
        ),
        (
            json!({"derivative": {"buckets_path": ["s.value"], "gap_policy": "insert_zeros"}}),
            vec![none(), json!(0.5), json!(-30.5), json!(0.0)],
        ),
        (
            json!({"cumulative_sum": {"buckets_path": "_count", "format": "0"}}),
            vec![json!(2.0), json!(3.0), json!(3.0), json!(4.0)],
        ),
        (
            json!({"cumulative_sum": {"buckets_path": "m"}}),
            vec![json!(20.0), json!(50.5), json!(50.5), json!(50.5)],
        ),
        (
            json!({"serial_diff": {"buckets_path": "_count", "lag": 2}}),
            vec![none(), none(), json!(-2.0), json!(0.0)],
        ),
        (
            json!({"moving_fn": {"buckets_path": "_count", "window": 2, "script": "MovingFunctions.unweightedAvg(values)"}}),
            vec![null(), json!(2.0), json!(1.5), json!(0.5)],
        ),
        (
            json!({"moving_fn": {"buckets_path": "_count", "window": "2", "shift": 1, "script": {"source": "MovingFunctions.max(values)"}}}),
            vec![json!(2.0), json!(2.0), json!(1.0), json!(1.0)],
        ),
        (
            json!({"moving_fn": {"buckets_path": "s", "window": 9, "script": "return MovingFunctions.sum(values);"}}),
            vec![json!(0.0), json!(30.0), none(), json!(60.5)],
        ),
        (
            json!({"bucket_script": {"buckets_path": {"a": "s", "b": "_count"}, "script": "params.a / params.b"}}),
            vec![json!(15.0), json!(30.5), none(), json!(0.0)],
        ),
        (
            json!({"bucket_script": {"buckets_path": {"var1": "_count"}, "gap_policy": "keep_values", "script": {"inline": "1 / params.var1", "lang": "painless"}}}),
            vec![json!(0.5), json!(1.0), null(), json!(1.0)],
        ),
        (
            json!({"normalize": {"buckets_path": "_count", "method": "percent_of_sum"}}),
            vec![json!(0.5), json!(0.25), json!(0.0), json!(0.25)],
        ),
        (
            json!({"normalize": {"buckets_path": "_count", "method": "rescale_0_100"}}),
            vec![json!(100.0), json!(50.0), json!(0.0), json!(50.0)],
        ),
    ];
    for (pipeline, expected) in table {
        assert_eq!(values(pipeline.clone()), expected, "{pipeline}");
    }
}

#[test]
fn a_derivative_is_given_for_a_unit_of_time() {
    let buckets = minutes(json!({"x": {"derivative": {"buckets_path": "_count", "unit": "1s"}}}));
    let rate = &buckets.unwrap()[1]["x"];
    assert_eq!(rate["normalized_value"], json!(-1.0 / 60.0));
}

#[test]
fn pipelines_read_one_another_in_any_order_of_their_names() {
    let chain = json!({
        "a": {"cumulative_sum": {"buckets_path": "b"}},
        "b": {"bucket_script": {"buckets_path": {"n": "c"}, "script": "params.n * 10"}},
        "c": {"cumulative_sum": {"buckets_path": "_count"}},
        "d": {"bucket_selector": {"buckets_path": {"n": "a"}, "script": "params.n >= 50 && params['n'] != 80"}},
    });
    let buckets = minutes(chain).unwrap();
    let found: Vec<&Json> = buckets.iter().map(|bucket| &bucket["a"]["value"]).collect();
    // A bucket without records is a gap.
    assert_eq!(found, [&json!(50.0), &json!(90.0)]);
}

#[test]
fn buckets_are_chosen_and_sorted() {
    let counts = |pipelines: Json| -> Vec<u64> {
        let buckets = minutes(pipelines).unwrap();
        let counts = buckets.iter().map(|bucket| bucket["doc_count"].as_u64());
        counts.map(Option::unwrap).collect()
    };
    let choose = |script: &str| json!({"x": {"bucket_selector": {"buckets_path": {"n": "_count"}, "script": script}}});
    assert_eq!(counts(choose("params.n > 0")), [2, 1, 1]);
    assert_eq!(counts(choose("n == 1 || false")), [1, 1]);
    assert_eq!(
        counts(choose("if (params.n > 1) { return true } return false;")),
        [2]
    );
    assert_eq!(
        counts(json!({"x": {"bucket_sort": {"sort": [{"_count": {"order": "desc"}}], "size": 3}}})),
        [2, 1, 1]
    );
    assert_eq!(
        counts(json!({"x": {"bucket_sort": {"sort": [{"_key": "desc"}], "from": 1, "size": 2}}})),
        [0, 1]
    );
    // A bucket without a value of the order is left out.
    assert_eq!(
        counts(json!({"x": {"bucket_sort": {"sort": ["m"]}}})),
        [2, 1]
    );
}

#[test]
fn pipelines_beside_buckets_give_one_answer() {
    let answer = |pipeline: Json| -> Json {
        let body = json!({
            "x": pipeline,
            "h": {"date_histogram": {"field": "@timestamp", "fixed_interval": "1m"}, "aggs": {
                "s": {"stats": {"field": "ms"}},
                "hosts": {"terms": {"field": "host"}, "aggs": {"m": {"max": {"field": "ms"}}}},
                "c": {"cumulative_sum": {"buckets_path": "_count"}}}}});
        aggregate(&body, &records())["x"].take()
    };
    let at = |path: &str| json!({"buckets_path": path});
    let table = [
        (json!({"avg_bucket": at("h>_count")}), json!({"value": 1.0})),
        (json!({"sum_bucket": at("h>s.sum")}), json!({"value": 60.5})),
        (
            json!({"max_bucket": at("h>_count")}),
            json!({"value": 2.0, "keys": ["2026-11-21T10:00:00.000Z"]}),
        ),
        (
            json!({"min_bucket": at("h>hosts['a']>m")}),
            json!({"value": 10.0, "keys": ["2026-11-21T10:00:00.000Z"]}),
        ),
        (
            json!({"max_bucket": at("h>hosts._bucket_count")}),
            json!({"value": 2.0, "keys": ["2026-11-21T10:00:00.000Z"]}),
        ),
        (
            json!({"stats_bucket": at("h>c")}),
            json!({"count": 3, "min": 2.0, "max": 4.0, "avg": 3.0, "sum": 9.0}),
        ),
        (
            json!({"percentiles_bucket": {"buckets_path": "h>_count", "percents": [0, 50, 100]}}),
            json!({"values": {"0.0": 0.0, "50.0": 1.0, "100.0": 2.0}}),
        ),
    ];
    for (pipeline, expected) in table {
        assert_eq!(answer(pipeline.clone()), expected, "{pipeline}");
    }
    let extended =
        answer(json!({"extended_stats_bucket": {"buckets_path": "h>_count", "sigma": 1}}));
    assert_eq!(extended["variance"], json!(0.5));
    assert_eq!(
        extended["std_deviation_bounds"]["upper"],
        json!(1.0 + 0.5_f64.sqrt())
    );
    assert_eq!(
        answer(json!({"max_bucket": at("h>s.max")}))["value"],
        json!(30.5)
    );
}

/// Asserts that pipelines are refused with these words.
fn refused(table: &[(Json, &str)]) {
    for (pipelines, part) in table {
        let error = minutes(pipelines.clone()).unwrap_err();
        assert!(error.contains(part), "{pipelines}: {error}");
    }
}

#[test]
fn wrong_paths_and_options_are_refused() {
    let of_count = |name: &str, value: Json| {
        let mut body = json!({"buckets_path": "_count"});
        body[name] = value;
        json!({"x": {"derivative": body}})
    };
    let at = |kind: &str, path: &str| json!({"x": {kind: {"buckets_path": path}}});
    let of_stats =
        json!({"x": {"derivative": {"buckets_path": "t"}}, "t": {"stats": {"field": "ms"}}});
    refused(&[
        (json!({"x": {"derivative": {}}}), "needs [buckets_path]"),
        (at("derivative", "nothing"), "no aggregation found"),
        (at("derivative", "x"), "no aggregation found"),
        (of_count("unit", json!("soon")), "length of time"),
        (of_count("gap_policy", json!("no")), "[gap_policy]"),
        (of_count("window", json!(1)), "does not support [window]"),
        (of_stats, "single value"),
        (at("avg_bucket", "s"), "names buckets and a value"),
        (
            at("avg_bucket", "s>value"),
            "needs an aggregation with buckets",
        ),
        (
            json!({"x": {"serial_diff": {"buckets_path": "s", "lag": 0}}}),
            "[lag]",
        ),
        (
            json!({"x": {"moving_fn": {"buckets_path": "s", "script": "1"}}}),
            "[window]",
        ),
        (
            json!({"x": {"normalize": {"buckets_path": "s", "method": "no"}}}),
            "[method]",
        ),
    ]);
}

#[test]
fn pipelines_at_a_wrong_place_are_refused() {
    let count = json!({"buckets_path": "_count"});
    refused(&[
        (
            json!({"x": {"cumulative_sum": {"buckets_path": "y"}}, "y": {"cumulative_sum": {"buckets_path": "x"}}}),
            "depends on it",
        ),
        (
            json!({"f": {"filter": {"match_all": {}}, "aggs": {"x": {"bucket_sort": {}}}}}),
            "directly within",
        ),
        (
            json!({"f": {"terms": {"field": "host"}, "aggs": {"x": {"derivative": count}}}}),
            "within histogram or date_histogram",
        ),
        (
            json!({"x": {"derivative": count, "aggs": {}}}),
            "no aggregations within",
        ),
    ]);
    let top = json!({"x": {"cumulative_sum": count}});
    let error = try_aggregate(&top, &records()).unwrap_err();
    assert!(
        error.message.contains("directly within"),
        "{}",
        error.message
    );
}

#[test]
fn wrong_scripts_are_refused() {
    let deep = "(".repeat(99);
    let long = "1+".repeat(3000);
    let table = [
        ("params.b", "params.b"),
        ("doc['x'].value", "does not support [doc]"),
        ("params.a +", "its end"),
        ("params.a > 1", "gives a number"),
        ("true + 1", "needs a number"),
        ("params.a ? 1 : 2", "needs a condition"),
        ("Math.max(1)", "has 2 arguments"),
        ("params['a", "has no end"),
        ("1.2.3", "no number"),
        ("params.a; params.a", "[params]"),
        (&deep, "deeper"),
        (&long, "at most 4096 bytes"),
        ("#", "[#]"),
    ];
    for (script, part) in table {
        let pipeline = json!({"bucket_script": {"buckets_path": {"a": "s"}, "script": script}});
        refused(&[(json!({"x": pipeline}), part)]);
    }
    let winters = "MovingFunctions.holtWinters(values, 1)";
    let moving = json!({"buckets_path": "s", "window": 2, "script": winters});
    refused(&[(json!({"x": {"moving_fn": moving}}), "there are ewma")]);
}

#[test]
fn scripts_compute_as_painless_does() {
    let result = |script: &str| -> Json {
        let pipeline = json!({"x": {"bucket_script": {"buckets_path": {"a": "s", "b": "_count"}, "script": script}}});
        minutes(pipeline).unwrap()[0]["x"]["value"].clone()
    };
    // `a` is 30, and `b` is 2.
    let table = [
        ("params.a - params.b - 1", 27.0),
        ("params.a / params.b / 3", 5.0),
        ("2 + params.a * params.b % 7", 6.0),
        ("-(params.a + params.b) * -1.5e1", 480.0),
        ("params.b == 2 ? 1L : 0", 1.0),
        ("params.b > 2 ? 1 : params.b < 2 ? 2 : 3f", 3.0),
        ("!(params.a <= 30) ? 1 : 0", 0.0),
        ("Math.round(params.a / 4) + Math.max(1, params.b)", 10.0),
        ("Math.pow(params.b, 3) + Math.abs(-1)", 9.0),
        ("a * b", 60.0),
        (
            "if (params.b == 0) { return 0 } else { return params.a / params.b; }",
            15.0,
        ),
        ("params.b == null ? 1 : 2", 2.0),
    ];
    for (script, expected) in table {
        assert_eq!(result(script), json!(expected), "{script}");
    }
}

#[test]
fn moving_functions_are_those_of_elasticsearch() {
    let last = |function: &str| -> f64 {
        let pipeline = json!({"moving_fn": {"buckets_path": "_count", "window": 10, "script": format!("MovingFunctions.{function}")}});
        values(pipeline)[3].as_f64().unwrap()
    };
    // Of the values 2, 1 and 0.
    let table = [
        ("min(values)", 0.0),
        ("sum(values)", 3.0),
        ("linearWeightedAvg(values)", 4.0 / 7.0),
        ("ewma(values, 0.5)", 0.75),
        ("holt(values, 0.5, 0.5)", 0.625),
        (
            "stdDev(values, MovingFunctions.unweightedAvg(values))",
            (2.0_f64 / 3.0).sqrt(),
        ),
    ];
    for (function, expected) in table {
        assert!(
            (last(function) - expected).abs() < 1e-12,
            "{function}: {}",
            last(function)
        );
    }
}
