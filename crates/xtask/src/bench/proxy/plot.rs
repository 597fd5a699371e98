//! A picture of CPU for a request: bars by size, each size on a scale of its own.

use std::fmt::Write;

use super::super::svg::{escaped, open};
use super::super::table::figure;
use super::results::Grid;

/// Sizes in pixels.
const WIDTH: f64 = 760.0;
const BAR_HEIGHT: f64 = 16.0;
const BAR_STEP: f64 = 20.0;
const TITLE_HEIGHT: f64 = 30.0;
const NAMES_WIDTH: f64 = 80.0;
const COLUMN_GAP: f64 = 28.0;
/// For the figure behind the longest bar.
const FIGURE_WIDTH: f64 = 44.0;
const COLUMNS: usize = 2;

/// Colours are readable on light and on dark pages.
const STYLE: &str = "\
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.own { fill: #0969da }
.other { fill: #9aa4af }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.own { fill: #4493f8 }
.other { fill: #656d76 }
}";

/// A candidate's bar.
struct Bar<'g> {
    name: &'g str,
    value: f64,
}

/// The picture; the bars of `own` stand out.
pub(super) fn picture(grid: &Grid, own: &str, title: &str) -> String {
    let panel_height = TITLE_HEIGHT + BAR_STEP * grid.rows.len() as f64;
    let panel_width = (WIDTH + COLUMN_GAP) / COLUMNS as f64 - COLUMN_GAP;
    let height = panel_height * grid.exchanges.len().div_ceil(COLUMNS) as f64 + TITLE_HEIGHT;
    let mut svg = open(title, (WIDTH, height), STYLE);
    for (number, exchange) in grid.exchanges.iter().enumerate() {
        let bars: Vec<Bar> = grid
            .rows
            .iter()
            .filter_map(|row| {
                let spread = row.series.get(number)?.least(|sample| sample.cpu_us)?;
                Some(Bar {
                    name: &row.name,
                    value: spread.best,
                })
            })
            .collect();
        let x = (number % COLUMNS) as f64 * (panel_width + COLUMN_GAP);
        let y = TITLE_HEIGHT + (number / COLUMNS) as f64 * panel_height;
        let _ = writeln!(
            svg,
            "<g transform=\"translate({x} {y})\">\n<text class=\"title\" x=\"{NAMES_WIDTH}\" \
             y=\"14\">{}</text>",
            escaped(&exchange.to_string())
        );
        draw_bars(&mut svg, &bars, own, panel_width);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_bars(svg: &mut String, bars: &[Bar], own: &str, panel_width: f64) {
    let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let room = panel_width - NAMES_WIDTH - FIGURE_WIDTH;
    for (number, bar) in bars.iter().enumerate() {
        let y = TITLE_HEIGHT - 8.0 + BAR_STEP * number as f64;
        let width = if most > 0.0 {
            room * bar.value / most
        } else {
            0.0
        };
        let class = if bar.name == own { "own" } else { "other" };
        let text_y = y + 12.0;
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{text_y:.0}\" text-anchor=\"end\">{}</text>\
             <rect class=\"{class}\" x=\"{NAMES_WIDTH:.0}\" y=\"{y:.0}\" width=\"{width:.1}\" \
             height=\"{BAR_HEIGHT:.0}\" rx=\"2\"/><text x=\"{:.1}\" y=\"{text_y:.0}\">{}</text>",
            NAMES_WIDTH - 6.0,
            escaped(bar.name),
            NAMES_WIDTH + width + 5.0,
            figure(bar.value)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::proxy::message::Exchange;
    use crate::bench::proxy::results::Sample;

    fn grid(costs: &[(&str, f64)]) -> Grid {
        let mut grid = Grid::new(costs.iter().map(|(name, _)| *name), &[Exchange::Echo(10)]);
        for (row, (_, cpu_us)) in grid.rows.iter_mut().zip(costs) {
            row.series[0].samples.push(Sample {
                cpu_us: *cpu_us,
                per_second: 1.0,
                p50_ms: 1.0,
                p99_ms: 1.0,
            });
        }
        grid
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
        let svg = picture(&grid(&[("<script>", 1.0)]), "own", "a & b");
        assert!(svg.contains(">&lt;script&gt;</text>"));
        assert!(svg.contains("<title>a &amp; b</title>"));
        assert!(!svg.contains("<script>"));
    }

    #[test]
    fn bars_are_as_long_as_what_they_show() {
        let svg = picture(&grid(&[("own", 25.0), ("other", 50.0)]), "own", "CPU");
        let widths: Vec<f64> = svg
            .split("<rect ")
            .skip(1)
            .filter_map(|rect| {
                rect.split("width=\"")
                    .nth(1)?
                    .split('"')
                    .next()?
                    .parse()
                    .ok()
            })
            .collect();
        assert_eq!(widths.len(), 2);
        assert!((widths[1] / widths[0] - 2.0).abs() < 0.01, "{widths:?}");
        assert_eq!(svg.matches("class=\"own\"").count(), 1);
    }

    #[test]
    fn what_was_not_measured_has_no_bar() {
        let mut grid = grid(&[("own", 25.0), ("other", 50.0)]);
        grid.rows[1].series[0].failed = Some("it broke".into());
        assert_eq!(picture(&grid, "own", "CPU").matches("<rect ").count(), 1);
        let nothing = Grid::new(std::iter::empty(), &[Exchange::Echo(10)]);
        assert!(picture(&nothing, "own", "CPU").ends_with("</svg>\n"));
    }
}
