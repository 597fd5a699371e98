//! Pictures as SVG: the parts that all have in common, and a picture of lines over time.

use std::fmt::Write;

use super::table::figure;

/// Sizes of a picture of lines in pixels.
const WIDTH: f64 = 760.0;
const PANEL_HEIGHT: f64 = 130.0;
const TITLE_HEIGHT: f64 = 30.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 24.0;

/// The narrowest mark.
const MARK_WIDTH_MIN: f64 = 1.0;

/// Colours are readable on light and on dark pages.
const STYLE: &str = "\
text { font: 11px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.axis { stroke: #9aa4af; fill: none }
.own { stroke: #0969da; fill: none; stroke-width: 1.2 }
.peer { stroke: #9a6700; fill: none; stroke-width: 1.2; stroke-dasharray: 5 3 }
.mark { fill: #cf222e; fill-opacity: 0.13 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.axis { stroke: #656d76 }
.own { stroke: #4493f8 }
.peer { stroke: #d29922 }
.mark { fill: #f85149 }
}";

/// A line of a panel.
pub(crate) struct Series {
    class: &'static str,
    /// Seconds and values.
    points: Vec<(f64, f64)>,
}

impl Series {
    /// The line of the subject.
    pub(crate) fn own(points: Vec<(f64, f64)>) -> Series {
        Series {
            class: "own",
            points,
        }
    }

    /// A line to compare it with.
    pub(crate) fn peer(points: Vec<(f64, f64)>) -> Series {
        Series {
            class: "peer",
            points,
        }
    }
}

/// Lines with one scale, which begins at 0.
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) series: Vec<Series>,
}

/// A span of time that is marked in all panels, in seconds.
pub(crate) struct Mark {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) text: String,
}

/// A picture of panels one below the other, over so many seconds.
pub(crate) fn picture(title: &str, panels: &[Panel], marks: &[Mark], length_s: f64) -> String {
    let height = TITLE_HEIGHT + PANEL_HEIGHT * panels.len() as f64;
    let mut svg = open(title, (WIDTH, height), STYLE);
    let across = |second: f64| LEFT + (second / length_s).min(1.0) * (WIDTH - RIGHT - LEFT);
    for (number, panel) in panels.iter().enumerate() {
        let y = TITLE_HEIGHT + PANEL_HEIGHT * number as f64;
        let _ = writeln!(svg, "<g transform=\"translate(0 {y:.0})\">");
        for mark in marks {
            let (x, end) = (across(mark.from), across(mark.to));
            let _ = writeln!(
                svg,
                "<rect class=\"mark\" x=\"{x:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\">\
                 <title>{}</title></rect>",
                (end - x).max(MARK_WIDTH_MIN),
                PANEL_HEIGHT - BOTTOM - TOP,
                escaped(&mark.text)
            );
        }
        draw(&mut svg, panel, &across, length_s);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw(svg: &mut String, panel: &Panel, across: &impl Fn(f64) -> f64, length_s: f64) {
    let (right, bottom) = (WIDTH - RIGHT, PANEL_HEIGHT - BOTTOM);
    let values = panel.series.iter().flat_map(|series| &series.points);
    let most = values.map(|(_, value)| *value).fold(0.0, f64::max);
    let scale = if most > 0.0 { most } else { 1.0 };
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"{LEFT}\" y=\"14\">{5}</text>\n\
         <path class=\"axis\" d=\"M{LEFT} {TOP} V{bottom} H{right}\"/>\n\
         <text x=\"{0:.0}\" y=\"{1:.0}\" text-anchor=\"end\">{2}</text>\n\
         <text x=\"{0:.0}\" y=\"{bottom:.0}\" text-anchor=\"end\">0</text>\n\
         <text x=\"{right:.0}\" y=\"{3:.0}\" text-anchor=\"end\">{4} s</text>",
        LEFT - 4.0,
        TOP + 8.0,
        figure(most),
        bottom + 14.0,
        figure(length_s),
        escaped(&panel.title),
    );
    for series in &panel.series {
        let mut path = String::new();
        for (number, (second, value)) in series.points.iter().enumerate() {
            let letter = if number == 0 { 'M' } else { 'L' };
            let y = bottom - value / scale * (bottom - TOP);
            let _ = write!(path, "{letter}{:.1} {y:.1}", across(*second));
        }
        if !path.is_empty() {
            let _ = writeln!(svg, "<path class=\"{}\" d=\"{path}\"/>", series.class);
        }
    }
}

/// The head of a picture of this size, with its title.
pub(super) fn open(title: &str, (width, height): (f64, f64), style: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\">\n<title>{0}</title>\n<style>\n{style}\n</style>\n\
         <text class=\"title\" x=\"0\" y=\"14\">{0}</text>\n",
        escaped(title)
    )
}

/// Text as it stands in XML.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_from_corner_to_corner_and_a_mark_has_its_width() {
        let panel = Panel {
            title: "a < b".into(),
            series: vec![Series::own(vec![(0.0, 0.0), (10.0, 5.0)])],
        };
        let mark = Mark {
            from: 0.0,
            to: 10.0,
            text: "kill".into(),
        };
        let svg = picture("c & d", &[panel], &[mark], 10.0);
        let (right, bottom) = (WIDTH - RIGHT, PANEL_HEIGHT - BOTTOM);
        let path = format!("M{LEFT:.1} {bottom:.1}L{right:.1} {TOP:.1}");
        assert!(svg.contains(&path), "{svg}");
        assert!(
            svg.contains(&format!("width=\"{:.1}\"", right - LEFT)),
            "{svg}"
        );
        assert!(svg.contains("a &lt; b") && svg.contains("c &amp; d"));
    }

    #[test]
    fn signs_of_xml_are_escaped() {
        assert_eq!(escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
    }
}
