//! A picture of cost against size: one panel for each question, both axes in powers of ten.

use std::fmt::Write;

use super::super::svg::{escaped, open};
use super::super::table::figure;

/// Sizes in pixels.
const WIDTH: f64 = 760.0;
const COLUMNS: usize = 3;
const PANEL_WIDTH: f64 = WIDTH / COLUMNS as f64;
const PANEL_HEIGHT: f64 = 170.0;
const TITLE_HEIGHT: f64 = 30.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 30.0;

/// The least CPU seconds that are drawn: a tick of the system's clock.
const CPU_S_MIN: f64 = 0.01;

/// Colours are readable on light and on dark pages.
const STYLE: &str = "\
text { font: 11px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.axis { stroke: #9aa4af; fill: none }
.own { stroke: #0969da; fill: none; stroke-width: 2 }
.peer { stroke: #9a6700; fill: none; stroke-width: 2; stroke-dasharray: 5 3 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.axis { stroke: #656d76 }
.own { stroke: #4493f8 }
.peer { stroke: #d29922 }
}";

/// The costs of one question.
pub(super) struct Panel {
    pub(super) title: String,
    /// Size in bytes and CPU seconds.
    pub(super) own: Vec<(f64, f64)>,
    pub(super) peer: Vec<(f64, f64)>,
}

/// A scale in powers of ten from one value to another one.
#[derive(Clone, Copy)]
struct Scale {
    from: f64,
    to: f64,
}

impl Scale {
    /// The powers of ten around the values.
    fn around(values: impl Iterator<Item = f64>) -> Scale {
        let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            from = from.min(value.log10());
            to = to.max(value.log10());
        }
        if !from.is_finite() {
            return Scale { from: 0.0, to: 1.0 };
        }
        let (from, to) = (from.floor(), to.ceil());
        Scale {
            from,
            to: if to > from { to } else { from + 1.0 },
        }
    }

    /// Where a value is, between 0 and 1.
    fn place(&self, value: f64) -> f64 {
        (value.log10() - self.from) / (self.to - self.from)
    }
}

/// The picture.
pub(super) fn picture(panels: &[Panel], title: &str) -> String {
    let rows = panels.len().div_ceil(COLUMNS);
    let height = TITLE_HEIGHT + PANEL_HEIGHT * rows as f64;
    let mut svg = open(title, (WIDTH, height), STYLE);
    let points = || panels.iter().flat_map(|p| p.own.iter().chain(&p.peer));
    let sizes = Scale::around(points().map(|(size, _)| *size));
    let costs = Scale::around(points().map(|(_, cost)| cost.max(CPU_S_MIN)));
    for (number, panel) in panels.iter().enumerate() {
        let x = (number % COLUMNS) as f64 * PANEL_WIDTH;
        let y = TITLE_HEIGHT + (number / COLUMNS) as f64 * PANEL_HEIGHT;
        let _ = writeln!(svg, "<g transform=\"translate({x:.0} {y:.0})\">");
        draw(&mut svg, panel, sizes, costs);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw(svg: &mut String, panel: &Panel, sizes: Scale, costs: Scale) {
    let (right, bottom) = (PANEL_WIDTH - RIGHT, PANEL_HEIGHT - BOTTOM);
    let across = |size: f64| LEFT + sizes.place(size) * (right - LEFT);
    let down = |cost: f64| bottom - costs.place(cost.max(CPU_S_MIN)) * (bottom - TOP);
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"{LEFT}\" y=\"12\">{}</text>\n\
         <path class=\"axis\" d=\"M{LEFT} {TOP} V{bottom} H{right}\"/>",
        escaped(&panel.title)
    );
    for power in [costs.from, costs.to] {
        let value = 10f64.powf(power);
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{} s</text>",
            LEFT - 4.0,
            down(value) + 4.0,
            figure(value)
        );
    }
    for (power, anchor) in [(sizes.from, "start"), (sizes.to, "end")] {
        let value = 10f64.powf(power);
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"{anchor}\">{} GB</text>",
            across(value),
            bottom + 16.0,
            figure(value / 1e9)
        );
    }
    for (class, line) in [("own", &panel.own), ("peer", &panel.peer)] {
        let mut path = String::new();
        for (number, (size, cost)) in line.iter().enumerate() {
            let letter = if number == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{letter}{:.1} {:.1}", across(*size), down(*cost));
        }
        if !path.is_empty() {
            let _ = writeln!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_that_grows_as_its_size_is_a_diagonal() {
        let panel = Panel {
            title: "a < b".into(),
            own: vec![(1e8, 0.1), (1e9, 1.0), (1e10, 10.0)],
            peer: Vec::new(),
        };
        let svg = picture(&[panel], "cost & size");
        let (right, bottom) = (PANEL_WIDTH - RIGHT, PANEL_HEIGHT - BOTTOM);
        let middle = ((LEFT + right) / 2.0, (TOP + bottom) / 2.0);
        let expected = format!(
            "M{LEFT:.1} {bottom:.1}L{:.1} {:.1}L{right:.1} {TOP:.1}",
            middle.0, middle.1
        );
        assert!(svg.contains(&expected), "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains("cost &amp; size"));
        assert!(!svg.contains("class=\"peer\""), "there is no line of it");
    }

    #[test]
    fn nothing_measured_is_no_picture_of_nonsense() {
        let svg = picture(&[], "nothing");
        assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN"));
    }
}
