//! Templates, and what they make of labels.

use std::collections::BTreeMap;

use super::*;

struct Labels(BTreeMap<&'static str, &'static str>);

impl Data for Labels {
    fn field(&self, name: &str) -> Option<&str> {
        self.0.get(name).copied()
    }

    fn fields(&self) -> Vec<(String, String)> {
        let all = self.0.iter();
        all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn line(&self) -> &[u8] {
        b"the line"
    }

    fn time_ns(&self) -> i64 {
        1_772_409_752_465_922_000
    }

    fn now_ns(&self) -> i64 {
        1_772_409_999_000_000_000
    }
}

fn fill(text: &str) -> Result<String, String> {
    let labels = Labels(BTreeMap::from([
        ("a", "x"),
        ("n", "42"),
        ("f", "2.5"),
        ("q", "a b&c"),
        ("json", r#"{"l":[1,"two",null],"o":{"k":true}}"#),
        ("service_name", "shop"),
        ("empty", ""),
    ]));
    let template = Template::new(text)?;
    let mut out = Vec::new();
    template.fill(&labels, &mut Scratch::default(), &mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

const FILLED: &[(&str, &str)] = &[
    (
        r#"{{index (fromJson .json) "x"}}|{{(fromJson .json).x}}|{{index . "x"}}|"#,
        "<no value>|<no value>||",
    ),
    (
        r#"{{print (index (fromJson .json) "x")}}{{default "d" (fromJson .json).x}}"#,
        "<nil>d",
    ),
    (
        r#"{{with index (fromJson .json) "x"}}1{{else}}2{{end}}{{eq (index . "x") ""}}"#,
        "2true",
    ),
    (r#"{{upper (fromJson .json).x}}"#, "error"),
    (
        r#"{{fromJson "[-0,0.0,-0.0]"}}{{toString (fromJson .json).x}}"#,
        "[-0 0 -0]<nil>",
    ),
    ("x{{.a}}y", "xxy"),
    ("{{.nope}}", ""),
    ("{{.service.name}}", "shop"),
    ("a {{- .a -}} b", "axb"),
    ("{{/* no */}}x{{- /* no */ -}} y", "xy"),
    (r#"{{if eq .a "x" "z"}}yes{{else}}no{{end}}"#, "yes"),
    (
        r#"{{if .empty}}1{{else if eq .n "42"}}2{{else}}3{{end}}"#,
        "2",
    ),
    (
        r#"{{if and .a (not .empty)}}1{{end}}{{if or .empty .nope}}2{{end}}"#,
        "1",
    ),
    (
        r#"{{with .a}}{{.}}{{end}}{{with .empty}}{{.}}{{else}}none{{end}}"#,
        "xnone",
    ),
    (r#"{{$x := .a}}{{$x = "y"}}{{$x}}{{$.a}}"#, "yx"),
    (
        r#"{{range $i, $v := (fromJson .json).l}}{{$i}}={{$v}};{{end}}"#,
        "0=1;1=two;2=<no value>;",
    ),
    (
        r#"{{range fromJson .json}}{{.}} {{end}}"#,
        "[1 two <nil>] map[k:true] ",
    ),
    (
        r#"{{range (fromJson .json).l}}{{if eq . "two"}}{{break}}{{end}}{{.}}{{end}}"#,
        "error",
    ),
    (
        r#"{{(index (fromJson .json).l 1)}}{{index (fromJson .json) "o" "k"}}"#,
        "twotrue",
    ),
    (r#"{{index (fromJson .json).l "1"}}"#, "error"),
    (r#"{{print nil}}{{printf "%v" nil}}"#, "<nil><nil>"),
    (r#"{{range fromJson "0 x"}}y{{else}}none{{end}}"#, "none"),
    (r#"{{mulf 0.1 3}} {{int "12.7"}}"#, "0.3 12"),
    (
        r#"{{printf "%*d|%-*s|%.*f|%*d|%*d" 4 7 3 "a" 1 2.55 -3 7 "x" 1}}"#,
        "   7|a  |2.5|7  |%!(BADWIDTH)1",
    ),
    (
        r#"{{printf "%q" "a\"\\\n\b\f\x01é'\u200b\U000e0001🙂"}}"#,
        r#""a\"\\\n\b\f\x01é'\u200b\U000e0001🙂""#,
    ),
    (
        r#"{{"1.5MB" | bytes}} {{"512KB" | bytes}} {{float64 999999}} {{printf "%v %g" 1e6 2e20}}"#,
        "1.5e+06 512000 999999 1e+06 2e+20",
    ),
    (r#"{{printf "%U %U" 66 128578}}"#, "U+0042 U+1F642"),
    (r#"{{title "o'neil mc-x_y a–b"}}"#, "O'Neil Mc-X_y A–b"),
    (r#"{{divf 1 0}}"#, "error"),
    (r#"{{slice .json "1"}}"#, "error"),
    (
        r#"{{define "t"}}<{{.}}>{{end}}{{template "t" .a}}{{block "b" .n}}[{{.}}]{{end}}"#,
        "<x>[42]",
    ),
    (
        r#"{{printf "%5s|%-5s|%05d|%.2f|%q|%v|%t|%x|%%" .a .a 42 2.5 "q" 1 true 255}}"#,
        "    x|x    |00042|2.50|\"q\"|1|true|ff|%",
    ),
    (
        r#"{{printf "%d" "x"}} {{printf "%s"}}"#,
        "%!d(string=x) %!s(MISSING)",
    ),
    (r#"{{.a | printf "%s-%s" "b"}}"#, "b-x"),
    (r#"{{print 1 2 "x" 3}}{{println "y"}}"#, "1 2x3y\n"),
    (r#"{{len .json}} {{slice "abcdef" 1 3}}"#, "35 bc"),
    (r#"{{lt 1 2}}{{ge 1.5 1.5}}{{ne "a" "b"}}"#, "truetruetrue"),
    (
        r#"{{ToUpper .a}}{{.a | ToLower | title}}{{upper "é"}}"#,
        "XXÉ",
    ),
    (
        r#"{{Replace "aaa" "a" "b" 2}}{{replace "a" "b" "aaa"}}{{Replace "aa" "a" "b" -1}}"#,
        "bbabbbbb",
    ),
    (
        r#"{{Trim "xxaxx" "x"}}{{TrimLeft "xa" "x"}}{{TrimRight "ax" "x"}}{{trimAll "x" "xax"}}"#,
        "aaaa",
    ),
    (
        r#"{{TrimPrefix "ab" "a"}}{{TrimSuffix "ab" "b"}}{{trimPrefix "a" "ab"}}{{trimSuffix "b" "ab"}}"#,
        "baba",
    ),
    (r#"{{TrimSpace " a "}}{{trim " b "}}"#, "ab"),
    (r#"{{regexReplaceAll "(a)(b)" "abab" "${2}$1"}}"#, "baba"),
    (
        r#"{{regexReplaceAll "(?P<x>a)" "ba" "<$x>"}}{{regexReplaceAllLiteral "a" "ba" "$1"}}"#,
        "b<a>b$1",
    ),
    (r#"{{"a1b22" | count "[0-9]+"}}"#, "2"),
    (
        r#"{{urlencode .q}} {{urldecode "a+b%26c"}}"#,
        "a+b%26c a b&c",
    ),
    (
        r#"{{bytes "2KB"}} {{duration "1m30s"}} {{duration_seconds "250ms"}}"#,
        "2000 90 0.25",
    ),
    (
        r#"{{alignLeft 3 "abcd"}}|{{alignLeft 3 "a"}}|{{alignRight 3 "abcd"}}|{{alignRight 3 "a"}}"#,
        "abc|a  |bcd|  a",
    ),
    (r#"{{b64enc "hi"}}{{b64dec "aGk"}}"#, "aGk=hi"),
    (
        r#"{{trunc 2 "abc"}}{{trunc -2 "abc"}}{{substr 1 2 "abc"}}{{substr 1 -1 "abc"}}"#,
        "abbcbbc",
    ),
    (
        r#"{{contains "b" "abc"}}{{hasPrefix "a" "abc"}}{{hasSuffix "a" "abc"}}"#,
        "truetruefalse",
    ),
    (
        r#"{{indent 2 "a"}}{{nindent 1 "b"}}{{repeat 3 "c"}}"#,
        "  a\n bccc",
    ),
    (
        r#"{{int .n}} {{float64 .f}} {{add .n 1 2}} {{sub 5 3}} {{mul 2 3}} {{div 7 2}} {{mod 7 2}}"#,
        "42 2.5 45 2 6 3 1",
    ),
    (
        r#"{{addf 1.5 2}} {{subf 5 .f}} {{mulf 2 .f}} {{divf 5 2}} {{max 1 3 2}} {{min 1 3}} {{maxf 1 2.5}} {{minf 1.5 2}}"#,
        "3.5 2.5 5 2.5 3 1 2.5 1.5",
    ),
    (
        r#"{{ceil 1.2}} {{floor 1.8}} {{round 1.256 2}} {{mulf 1e10 1e12}} {{divf 1 100000}}"#,
        "2 1 1.26 1e+22 1e-05",
    ),
    (r#"{{.nope | default "d"}}{{.a | default "d"}}"#, "dx"),
    (
        r#"{{printf "%[2]d %[1]d|%[3]s|%[x]d|%[2]*[1]d|%[1]v %[1]T" 1 2}}"#,
        "2 1|%!s(BADINDEX)|%!d(BADINDEX)| 1|1 int",
    ),
    (
        r#"{{printf "%T %T %T %T %q %q" 1 "a" 1.5 nil 65 39}}"#,
        r#"int string float64 <nil> 'A' '\''"#,
    ),
    (
        r#"{{trunc 3 "grüße"}}|{{trunc 4 "grüße"}}|{{trunc -3 "日本"}}|{{substr 2 5 "grüße"}}|{{substr 9 2 "abc"}}"#,
        "gr\u{fffd}|grü|本|ü\u{fffd}|",
    ),
    (
        r#"{{__timestamp__.Format "2006-01-02"}} {{$t := __timestamp__}}{{$t.UTC.Format "15:04"}} {{$t.String}}"#,
        "2026-03-02 00:02 2026-03-02 00:02:32.465922 +0000 UTC",
    ),
    (
        r#"{{(unixToTime "1679577215").Format "Jan _2"}} {{(toDate "2006" "2026").Year}}"#,
        "Mar 23 2026",
    ),
    (
        r#"{{$t := __timestamp__}}{{($t.Truncate 3600000000000).Unix}} {{($t.Add 5).Nanosecond}} {{$t.Before now}} {{"15" | $t.Format}}"#,
        "1772409600 465922005 true 00",
    ),
    (
        r#"{{__line__}} {{__timestamp__.Unix}} {{(__timestamp__).Year}}"#,
        "the line 1772409752 2026",
    ),
    (
        r#"{{__timestamp__ | date "2006-01-02"}} {{unixEpochMillis now}} {{unixEpochNanos (unixToTime "1772409752")}}"#,
        "2026-03-02 1772409999000 1772409752000000000",
    ),
    (
        r#"{{"2026-03-02" | toDate "2006-01-02" | unixEpoch}} {{toDateInZone "2006-01-02" "Europe/Berlin" "2026-03-02" | unixEpoch}}"#,
        "1772409600 1772406000",
    ),
    ("{{__timestamp__}}", "2026-03-02 00:02:32.465922 +0000 UTC"),
    ("{{`a\"b`}}{{'a'}}{{0x10}}{{1.5e3}}{{-3}}", "a\"b97161500-3"),
    ("{{html `<a>`}}", "&lt;a&gt;"),
];

#[test]
fn templates_are_filled() {
    for (text, expected) in FILLED {
        match fill(text) {
            Ok(out) => assert_eq!(&out, expected, "{text}"),
            // An order of values of two kinds is none.
            Err(error) => assert_eq!(*expected, "error", "{text}: {error}"),
        }
    }
}

#[test]
fn wrong_templates_are_refused() {
    for text in [
        "{{",
        "{{.a",
        "{{end}}",
        "{{if .a}}",
        "{{else}}",
        "{{nope}}",
        "{{.a | }}",
        "{{(.a}}",
        "{{\"x}}",
        "{{if}}x{{end}}",
        "{{template x}}",
        "{{define}}{{end}}",
        "{{.a )}}",
        "{{/* x",
        "{{&}}",
        "{{$x := }}",
    ] {
        assert!(Template::new(text).is_err(), "{text}");
    }
    for text in [
        "{{div 1 0}}",
        "{{.a.b}}",
        "{{eq 1 \"a\"}}",
        "{{template \"x\"}}",
        "{{$x}}",
        "{{urldecode \"%x\"}}",
        "{{.a 1}}",
    ] {
        assert!(fill(text).is_err(), "{text}");
    }
}

/// A function would make terabytes of texts of a mebibyte.
#[test]
fn functions_make_no_texts_without_bounds() {
    let a = r#"(repeat 1000000 "a")"#;
    let z = r#"(repeat 1000000 "z")"#;
    let places = |verb: &str| verb.repeat(100_000);
    for text in [
        format!(r#"{{{{replace "a" {z} {a}}}}}"#),
        format!(r#"{{{{replace "" {z} {a}}}}}"#),
        format!(r#"{{{{Replace {a} "a" {z} -1}}}}"#),
        r#"{{indent 1000000 (repeat 1000000 "\n")}}"#.to_owned(),
        r#"{{nindent 1000000 (repeat 1000000 "\n")}}"#.to_owned(),
        format!(r#"{{{{regexReplaceAll "a" {a} {z}}}}}"#),
        format!(r#"{{{{regexReplaceAllLiteral "a" {a} {z}}}}}"#),
        format!(r#"{{{{regexReplaceAll ".*" {a} (repeat 500000 "$0")}}}}"#),
        format!(r#"{{{{printf "{}" {a}}}}}"#, places("%[1]s")),
        format!(r#"{{{{printf "{}" 1}}}}"#, places("%[1]4096d")),
        format!("{{{{$a := {a}}}}}{{{{print {}}}}}", places("$a ")),
        format!(r#"{{{{range 1000}}}}{{{{$a := {a}}}}}{{{{end}}}}"#),
    ] {
        let error = fill(&text).unwrap_err();
        assert!(error.contains("bytes"), "{error}: {text:.60}");
    }
    // Texts within them are as before.
    let filled = fill(r#"{{replace "" "-" "ab"}}{{replace "a" "" "aba"}}{{indent 2 "a\nb"}}"#);
    assert_eq!(filled.unwrap(), "-a-b-b  a\n  b");
    let long = fill(&format!("{{{{len (replace \"a\" \"bc\" {a})}}}}"));
    assert_eq!(long.unwrap(), "2000000");
}

#[test]
fn work_is_bounded() {
    let endless = r#"{{define "t"}}{{template "t" .}}{{end}}{{template "t" .}}"#;
    assert!(fill(endless).unwrap_err().contains("deeper"));
    let long = "{{range 100000}}{{range 100000}}{{repeat 100000 \"x\"}}{{end}}{{end}}";
    assert!(fill(long).is_err());
    let deep = format!("{{{{{}1{}}}}}", "(".repeat(100), ")".repeat(100));
    assert!(Template::new(&deep).unwrap_err().contains("deeper"));
    let deep = format!("{}{}", "{{if .a}}".repeat(100), "{{end}}".repeat(100));
    assert!(Template::new(&deep).unwrap_err().contains("deeper"));
}
