//! Draws queries for lines: selectors and stages over the labels and fields that the data have.

use super::expressions;
use super::query::{Kind, Log, Matcher, Stage};
use crate::draw::Draw;

/// Labels of streams, and values that they have or nearly have.
const LABELS: [(&str, &[&str]); 8] = [
    (
        "app",
        &[
            "shop", "api", "web", "cron", "net", "tty", "pack", "ünï", "nobody",
        ],
    ),
    ("env", &["prod", "dev", "test"]),
    ("region", &["eu", "us"]),
    ("node", &["web-1", "web-2"]),
    ("job", &["meta"]),
    ("service", &["svc"]),
    ("team", &["x"]),
    ("service_name", &["shop", "svc", "unknown_service", "meta"]),
];

/// Regular expressions over such values.
const LABEL_EXPRESSIONS: [&str; 8] = [
    "sh.*|api",
    "(?i)SHOP",
    "web-[0-9]+",
    "p.+",
    ".+",
    "prod|dev",
    "[a-c].*",
    "x|eu|",
];

/// Names of metadata.
const METADATA: [&str; 3] = ["trace_id", "who", "weight"];

/// What line filters look for.
const WORDS: [&str; 14] = [
    "sold",
    "lost",
    "ERROR",
    "error",
    "slow query",
    "7",
    "msg=",
    "\\\"n\\\":1",
    "GET",
    "é",
    "(",
    "[x]",
    "",
    "ünlikely",
];

/// What line filters look for with regular expressions.
const EXPRESSIONS: [&str; 12] = [
    "sold|lost",
    "(?i)error",
    "[0-9]{2}$",
    "^\\\\{",
    "took.+7",
    "n=1[0-9]*\\\\b",
    "\\\\w+ \\\\d+",
    ".*",
    "s(ol|lo)",
    "a.c",
    "^$",
    "x{2,}|[^a-z]retry",
];

/// Patterns of lines.
const LINE_PATTERNS: [&str; 6] = [
    "<_> level=<_>",
    "n=<_>",
    "<_>sold<_>",
    "<_> HTTP/1.1\\\" <_>",
    "job <_> finished after <_>",
    "{<_>}",
];

/// Ranges of addresses.
const ADDRESSES: [&str; 6] = [
    "10.0.0.0/8",
    "192.168.4.5",
    "10.0.0.0-10.0.3.255",
    "2001:db8::/32",
    "::1",
    "8.8.8.0/24",
];

/// Fields that parsers find, by what their values are.
pub(super) const TEXTS: [&str; 12] = [
    "level",
    "msg",
    "path",
    "user_name",
    "name",
    "method",
    "pod",
    "zone",
    "ok",
    "peer",
    "missing",
    "detected_level",
];
pub(super) const NUMBERS: [&str; 5] = ["n", "took", "code", "user_id", "missing"];
pub(super) const DURATIONS: [&str; 1] = ["latency"];
pub(super) const SIZES: [&str; 1] = ["size"];

/// Values that texts have or nearly have.
const VALUES: [&str; 12] = [
    "error",
    "info",
    "sold",
    "slow query",
    "/cart",
    "ann",
    "GET",
    "p-1",
    "z1",
    "true",
    "",
    "10.0.0.1",
];

/// Templates for lines and labels.
const TEMPLATES: [&str; 64] = [
    "{{.msg}}",
    "{{.level}} {{.msg}} {{.missing}}|",
    "{{ ToUpper .msg }}-{{ ToLower .level }}",
    "{{ .msg | upper | trunc 3 }}{{ trunc -2 .msg }}",
    "{{ if eq .level \"error\" }}E{{ else if .level }}{{ .level }}{{ else }}none{{ end }}",
    "{{ __line__ | len }}",
    "{{ __timestamp__ | unixEpoch }} {{ unixEpochMillis __timestamp__ }}",
    "{{ date \"2006-01-02T15:04:05.000Z07:00 Mon Jan _2 3PM\" __timestamp__ }}",
    "{{ regexReplaceAll \"([a-z])([a-z]+)\" .msg \"<$2${1}x>\" }}",
    "{{ regexReplaceAllLiteral \"l\" .msg \"$1\" }}",
    "{{ .took | float64 | mulf 2.5 }}",
    "{{ add 1 (int .n) 2 }} {{ sub 9 (int .n) }} {{ mul 2 3 }}",
    "{{ div (int .code) 7 }} {{ mod (int .code) 7 }}",
    "{{ addf 1.5 2 }} {{ subf 3 0.5 }} {{ divf 1 3 }}",
    "{{ max 1 (int .n) 3 }} {{ min 1 2 }} {{ maxf 1.5 2.5 }} {{ minf 1 .5 }}",
    "{{ .took | float64 | ceil }} {{ .took | float64 | floor }} {{ round 2.3456 2 }}",
    "{{ range $i, $e := fromJson .list }}{{ $i }}={{ $e }};{{ end }}",
    "{{ .path | urldecode }} {{ urlencode .path }}",
    "{{ b64enc .msg }} {{ b64dec \"YWJj\" }}",
    "{{ .latency | duration }} {{ duration_seconds .latency }}",
    "{{ .size | bytes }}",
    "{{ alignLeft 6 .msg }}|{{ alignRight 6 .code }}|",
    "{{ .msg | replace \"o\" \"00\" }} {{ Replace .msg \"s\" \"S\" 1 }}",
    "{{ default \"none\" .name }}",
    "{{ substr 1 3 .msg }}",
    "{{ .msg | contains \"l\" }} {{ hasPrefix \"s\" .msg }} {{ hasSuffix \"t\" .msg }}",
    "{{ count \"l\" .msg }}",
    "{{ printf \"%-8s|%5s|%q|%x|%v\" .msg .code .msg .code .level }}",
    "{{ printf \"%05.1f %d %t\" (float64 .took) (int .n) true }}",
    "{{ title .msg }} {{ trim .msg }} {{ trimPrefix \"s\" .msg }} {{ trimSuffix \"t\" .msg }}",
    "{{ TrimLeft .msg \"sl\" }} {{ TrimRight .msg \"t\" }} {{ Trim .msg \"s\" }} {{ trimAll \"st\" .msg }}",
    "{{ repeat 2 .code }} {{ indent 2 .msg }}{{ nindent 1 .msg }}",
    "{{ and .msg .level }} {{ or .missing .msg }} {{ not .missing }}",
    "{{ lt (int .n) 20 }} {{ ge 3.5 3.5 }} {{ ne .msg \"sold\" }}",
    "{{ with .name }}[{{ . }}]{{ else }}-{{ end }}",
    "{{ $x := .msg }}{{ $x }}{{- \" trimmed \" -}} {{/* nothing */}}|{{- /* nothing */ -}} |",
    "{{ index (fromJson __line__) \"n\" }}",
    "{{ .trace_id }}/{{ .who }}/{{ .app }}/{{ .env }}",
    "{{ slice .msg 1 2 }} {{ len .msg }} {{ print .n .code }}",
    "{{ eq .code \"200\" \"500\" }} {{ html \"<&>\" }} {{ js \"a'b\" }} {{ urlquery \"a b\" }}",
    "{{ toDate \"2006-01-02\" \"2024-05-01\" | unixEpoch }}",
    "{{ unixToTime \"1714557600\" | date \"15:04\" }} {{ unixEpochNanos __timestamp__ }}",
    "{{ index (fromJson __line__) \"nokey\" }}{{ (fromJson __line__).msg }}",
    "{{ (fromJson __line__).user.name }} {{ len (fromJson .list) }}",
    "{{ printf \"%d|%s|%v|%q\" 3.5 5 .msg 7 }} {{ printf \"%.3f|%e|%g\" 2.5 2.5 1e21 }}",
    "{{ int .msg }} {{ int \"12.7\" }} {{ float64 .msg }} {{ int 3.9 }}",
    "{{ mulf 0.1 3 }} {{ divf 10 4 }} {{ addf .took 1 }} {{ maxf .took .n }}",
    "{{ round .took 1 }} {{ ceil .took }} {{ floor -1.5 }} {{ round 2.5 0 }} {{ round -2.5 0 }}",
    "{{ trunc 100 .msg }}{{ trunc 0 .msg }} {{ substr 0 2 .msg }}|{{ substr -1 3 .msg }}",
    "{{ repeat 0 .msg }}{{ title \"o'neil mc-donald x_y\" }} {{ .msg | title }}",
    "{{ if and (ne .code \"\") (gt (int .code) 300) }}bad{{ else }}ok{{ end }}",
    "{{ range $k, $v := fromJson __line__ }}{{ $k }}:{{ $v }},{{ end }}",
    "{{ .user_id | add 1 }} {{ add \"2\" 3 }} {{ sub 5 \"x\" }}",
    "{{ lower .level }}{{ upper .missing }}",
    "{{ unixToTime .n | unixEpoch }} {{ toDateInZone \"2006-01-02 15:04\" \"Europe/Berlin\" \"2024-05-01 10:00\" | unixEpoch }}",
    "{{ __timestamp__ }} {{ __timestamp__.Unix }}",
    "{{ .level | eq \"info\" | not }} {{ print nil }}",
    "{{ print 1 2 \"a\" \"b\" 3 true }} {{ println .code }}",
    "{{ fromJson .list }} {{ fromJson __line__ }}",
    "{{ printf \"%+d % d %x %X %o %c %U\" 5 6 255 255 8 65 66 }} {{ printf \"%t %v %p\" false true 1 }}",
    "{{ printf \"%8.2f|%-8s|%08d|%*d\" 3.14159 \"ab\" 42 5 7 }}",
    "{{ (.code | int) | printf \"%03d\" }} {{ .took | printf \"%.4s\" }}",
    "static",
    "{{ .msg",
];

/// What a pipeline reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Json,
    Logfmt,
    Access,
    Packed,
    Metadata,
    Any,
}

fn stage(kind: Kind, text: String) -> Stage {
    Stage { kind, text }
}

/// Whether something of so many percent happens.
pub(super) fn is_drawn(draw: &mut Draw, percent: usize) -> bool {
    draw.below(100) < percent
}

/// A query for lines.
pub(super) fn log(draw: &mut Draw) -> Log {
    let family = *draw.one(&[
        Family::Json,
        Family::Json,
        Family::Logfmt,
        Family::Logfmt,
        Family::Access,
        Family::Packed,
        Family::Metadata,
        Family::Any,
    ]);
    let mut stages = Vec::new();
    for _ in 0..draw.below(3) {
        stages.push(line_filter(draw));
    }
    if is_drawn(draw, 15) {
        stages.push(label_filter(draw, false));
    }
    let mut is_parsed = is_drawn(draw, 75);
    if is_parsed {
        stages.push(parser(draw, family));
    }
    for _ in 0..draw.below(4) {
        stages.push(later(draw, family, &mut is_parsed));
    }
    Log {
        matchers: matchers(draw, family),
        stages,
    }
}

/// Whether a stage makes labels of the line's fields.
pub(super) fn is_parser(stage: &Stage) -> bool {
    matches!(
        stage.kind,
        Kind::Json | Kind::Logfmt | Kind::Regexp | Kind::Pattern | Kind::Unpack
    )
}

fn matchers(draw: &mut Draw, family: Family) -> Vec<Matcher> {
    let app = match family {
        Family::Json => Some("shop"),
        Family::Logfmt => Some("api"),
        Family::Access => Some("web"),
        Family::Packed => Some("pack"),
        Family::Metadata | Family::Any => None,
    };
    let mut matchers = Vec::new();
    match (family, app) {
        (_, Some(app)) if is_drawn(draw, 85) => matchers.push(equal("app", app)),
        (Family::Metadata, _) => matchers.push(equal("job", "meta")),
        _ if is_drawn(draw, 4) => {
            let value = *draw.one(&["clash", "broken", "levels"]);
            matchers.push(equal("odd", value));
        }
        _ => matchers.push(matcher(draw)),
    }
    for _ in 0..draw.below(3) {
        if is_drawn(draw, 50) {
            matchers.push(matcher(draw));
        }
    }
    matchers
}

fn equal(name: &str, value: &str) -> Matcher {
    Matcher {
        name: name.into(),
        rest: format!("=\"{value}\""),
    }
}

fn matcher(draw: &mut Draw) -> Matcher {
    let (name, values) = *draw.one(&LABELS);
    let value = draw.one(values);
    let rest = match draw.below(10) {
        0..4 => format!("=\"{value}\""),
        4 => format!("!=\"{value}\""),
        5 => format!("=~\"{}\"", draw.one(&LABEL_EXPRESSIONS)),
        6 => format!("!~\"{}\"", draw.one(&LABEL_EXPRESSIONS)),
        7 | 8 => format!("{}{}", draw.one(&["=~", "!~"]), expressions::of_label(draw)),
        _ => format!("{}\"\"", draw.one(&["=", "!="])),
    };
    Matcher {
        name: name.into(),
        rest,
    }
}

fn line_filter(draw: &mut Draw) -> Stage {
    let text = match draw.below(15) {
        0..4 => format!("|= \"{}\"", draw.one(&WORDS)),
        4 => format!("!= \"{}\"", draw.one(&WORDS)),
        5 => format!("|~ \"{}\"", draw.one(&EXPRESSIONS)),
        6 => format!("!~ \"{}\"", draw.one(&EXPRESSIONS)),
        7 => format!(
            "|= `{}` or \"{}\"",
            draw.one(&["sold", "a b"]),
            draw.one(&WORDS)
        ),
        8 => {
            let operator = draw.one(&["!=", "|~", "!~"]);
            format!(
                "{operator} \"lost\" or \"{}\" or \"7\"",
                draw.one(&WORDS[..7])
            )
        }
        9 => format!("|> \"{}\"", draw.one(&LINE_PATTERNS)),
        10 => format!("!> \"{}\"", draw.one(&LINE_PATTERNS)),
        11..14 => expressions_of_lines(draw),
        _ => {
            let operator = draw.one(&["|=", "!="]);
            format!("{operator} ip(\"{}\")", draw.one(&ADDRESSES))
        }
    };
    stage(Kind::LineFilter, text)
}

/// A line filter with one regular expression or two.
fn expressions_of_lines(draw: &mut Draw) -> String {
    let operator = draw.one(&["|~", "|~", "|~", "!~"]);
    let one = expressions::of_line(draw);
    match draw.below(6) {
        0 => format!("{operator} {one} or {}", expressions::of_line(draw)),
        _ => format!("{operator} {one}"),
    }
}

fn parser(draw: &mut Draw, family: Family) -> Stage {
    if is_drawn(draw, 12) {
        return stage(Kind::Regexp, expressions::stage(draw));
    }
    if is_drawn(draw, 10) {
        let other = *draw.one(&[Family::Json, Family::Logfmt, Family::Access, Family::Packed]);
        return parser_of(draw, other);
    }
    match family {
        Family::Metadata | Family::Any => {
            let other = *draw.one(&[Family::Json, Family::Logfmt]);
            parser_of(draw, other)
        }
        family => parser_of(draw, family),
    }
}

fn parser_of(draw: &mut Draw, family: Family) -> Stage {
    const JSON: [&str; 11] = [
        "| json",
        "| json",
        "| json",
        "| json",
        "| json level, msg, took",
        "| json who=\"user.name\", user_id=\"user.id\", n",
        "| json first=\"list[0]\", a=\"list[1].a\", list=\"list\"",
        "| json app=\"msg\", env=\"user.name\", region",
        "| json user=\"user\", k=\"[\\\"k-1.x\\\"]\", msg",
        "| json est=\"deep.er.est\", deep=\"deep\", void=\"void\", ok=\"ok\"",
        "| json out=\"list[9]\", none=\"no.such\", took=\"took\", code=\"code\"",
    ];
    const LOGFMT: [&str; 10] = [
        "| logfmt",
        "| logfmt",
        "| logfmt",
        "| logfmt --strict",
        "| logfmt --keep-empty",
        "| logfmt --strict --keep-empty",
        "| logfmt level, msg, took",
        "| logfmt app=\"level\", who=\"code\"",
        "| logfmt what=\"msg\", took, code",
        "| logfmt --keep-empty name=\"name\", empty, flag",
    ];
    const ACCESS: [&str; 8] = [
        "| pattern `<peer> - - [<_>] \"<method> <path> <_>\" <code> <n> <took>`",
        "| pattern `<peer> <_> \"<method> <path>\" <code> <rest>`",
        "| pattern `<_> \"<method> <_>\" <code> <_>`",
        "| regexp `^(?P<peer>\\S+) .*\"(?P<method>\\w+) (?P<path>.*) HTTP/1.1\" (?P<code>\\d+) (?P<n>\\d+) (?P<took>\\S+)`",
        "| regexp \"(?P<method>GET|POST) (?P<path>\\\\S*)\"",
        "| regexp `(?P<peer>[0-9.]+)(?P<none>zzz)?`",
        "| regexp `(?P<app>\\w+) (?P<env>\\S+)`",
        "| pattern `<app> <_> <_> [<node>]`",
    ];
    let (kind, texts): (Kind, &[&str]) = match family {
        Family::Json | Family::Any | Family::Metadata => (Kind::Json, &JSON),
        Family::Logfmt => (Kind::Logfmt, &LOGFMT),
        Family::Access => (Kind::Pattern, &ACCESS),
        Family::Packed => (Kind::Unpack, &["| unpack"]),
    };
    let text = draw.one(texts);
    let kind = if text.starts_with("| regexp") {
        Kind::Regexp
    } else {
        kind
    };
    stage(kind, (*text).into())
}

/// A stage behind the parser.
fn later(draw: &mut Draw, family: Family, is_parsed: &mut bool) -> Stage {
    match draw.below(16) {
        0..6 => label_filter(draw, *is_parsed),
        6 => line_filter(draw),
        7..10 => stage(
            Kind::LineFormat,
            format!("| line_format `{}`", draw.one(&TEMPLATES)),
        ),
        10 | 11 => label_format(draw),
        12 => {
            let kind = *draw.one(&[Kind::Drop, Kind::Keep]);
            let word = if kind == Kind::Drop { "drop" } else { "keep" };
            stage(kind, format!("| {word} {}", kept(draw)))
        }
        13 => stage(Kind::Decolorize, "| decolorize".into()),
        _ => {
            *is_parsed = true;
            match family {
                Family::Packed => stage(Kind::Logfmt, "| logfmt".into()),
                family => parser(draw, family),
            }
        }
    }
}

fn kept(draw: &mut Draw) -> String {
    let one = |draw: &mut Draw| match draw.below(4) {
        0 => (*draw.one(&["app", "env", "region"])).to_owned(),
        1 => format!("{}=\"{}\"", draw.one(&TEXTS), draw.one(&VALUES)),
        2 => {
            let operator = draw.one(&["=~", "!~"]);
            let value = expressions::of_field(draw);
            format!(
                "{}{operator}{value}",
                draw.one(&["app", "msg", "level", "code"])
            )
        }
        _ => (*draw.one(&TEXTS)).to_owned(),
    };
    match draw.below(2) {
        0 => one(draw),
        _ => format!("{}, {}", one(draw), one(draw)),
    }
}

fn label_format(draw: &mut Draw) -> Stage {
    let text = match draw.below(5) {
        0 => format!("new={}", draw.one(&TEXTS)),
        1 => format!("env={}, {}=app", draw.one(&TEXTS), draw.one(&["x", "msg"])),
        2 => format!("msg=`{}`", draw.one(&TEMPLATES)),
        3 => "msg=code, code=msg".to_owned(),
        _ => format!("y=`{}`, z=\"{{{{.y}}}}\"", draw.one(&TEMPLATES)),
    };
    stage(Kind::LabelFormat, format!("| label_format {text}"))
}

/// A condition on labels; on fields of the line only where a parser has found them.
pub(super) fn label_filter(draw: &mut Draw, is_parsed: bool) -> Stage {
    let text = match draw.below(5) {
        0 => {
            let word = *draw.one(&[" and ", " or ", ", ", " "]);
            let (one, other) = (condition(draw, is_parsed), condition(draw, is_parsed));
            format!("{one}{word}{other}")
        }
        1 if is_drawn(draw, 30) => {
            let parts = [0; 3].map(|_| condition(draw, is_parsed));
            format!("{} or ({} and {})", parts[0], parts[1], parts[2])
        }
        _ => condition(draw, is_parsed),
    };
    stage(Kind::LabelFilter, format!("| {text}"))
}

fn condition(draw: &mut Draw, is_parsed: bool) -> String {
    const COMPARISONS: [&str; 7] = [">", ">=", "<", "<=", "=", "==", "!="];
    if !is_parsed {
        return match draw.below(3) {
            0 => format!(
                "weight {} {}",
                draw.one(&COMPARISONS),
                draw.one(&["1", "2.5", "-1"])
            ),
            1 => {
                let (name, values) = *draw.one(&LABELS);
                format!("{name}{}\"{}\"", draw.one(&["=", "!="]), draw.one(values))
            }
            _ if is_drawn(draw, 30) => {
                let operator = draw.one(&["=~", "!~"]);
                let value = expressions::of_field(draw);
                format!("{}{operator}{value}", draw.one(&METADATA))
            }
            _ => {
                let operator = draw.one(&["=", "!=", "=~", "!~"]);
                let value = draw.one(&["t01", "t.*", "ann", "", "t0[1-5]"]);
                format!("{}{operator}\"{value}\"", draw.one(&METADATA))
            }
        };
    }
    let comparison = *draw.one(&COMPARISONS);
    match draw.below(14) {
        12 | 13 => {
            let operator = draw.one(&["=~", "!~"]);
            let name = draw
                .one(&[TEXTS.as_slice(), &NUMBERS, &DURATIONS].concat())
                .to_owned();
            format!("{name}{operator}{}", expressions::of_field(draw))
        }
        0..3 => format!("{}=\"{}\"", draw.one(&TEXTS), draw.one(&VALUES)),
        3 => format!("{}!=\"{}\"", draw.one(&TEXTS), draw.one(&VALUES)),
        4 => {
            let operator = draw.one(&["=~", "!~"]);
            let value = draw.one(&["s.*", "(?i)error|info", ".+", "", "/.*", "[0-9]+"]);
            format!("{}{operator}\"{value}\"", draw.one(&TEXTS))
        }
        5..8 => {
            let value = draw.one(&["200", "3", "2.5", "0", "-1", "400", "1e2"]);
            format!("{} {comparison} {value}", draw.one(&NUMBERS))
        }
        8 => {
            let value = draw.one(&["10ms", "1s", "1m30s", "0s", "1.5s", "350us"]);
            format!(
                "{} {comparison} {value}",
                draw.one(&["latency", "latency", "took"])
            )
        }
        9 => {
            let value = draw.one(&["1KB", "2KiB", "512B", "1.5MB", "1B", "10KiB"]);
            format!(
                "{} {comparison} {value}",
                draw.one(&["size", "size", "msg"])
            )
        }
        10 => {
            let operator = draw.one(&["=", "!="]);
            let name = draw.one(&["peer", "peer", "msg"]);
            format!("{name}{operator}ip(\"{}\")", draw.one(&ADDRESSES))
        }
        _ => {
            let value = draw.one(&["", "JSONParserErr", "LogfmtParserErr"]);
            let operator = draw.one(&["=", "!="]);
            format!("__error__{operator}\"{value}\"")
        }
    }
}
