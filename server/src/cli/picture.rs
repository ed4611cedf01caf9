//! A map, a question and its route as SVG (`path --svg`). Metres from the grid's corner, north up.

use std::fmt::Write;

use clap::ValueEnum;
use nav::{Cell, Circle, Grid, Point, Route};

use super::question::Question;

/// What can be drawn, from the bottom up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Layer {
    /// Walkable cells of the grid
    Cells,
    /// Walkable cells that the start's component does not reach
    Unreachable,
    /// Outlines of the areas, closed ones dashed
    Areas,
    /// Obstacle polygons
    Obstacles,
    /// The circles that stand in the way
    Circles,
    /// The searched chain of cells
    Chain,
    /// The route with its waypoints
    Route,
    /// Start and requested end
    Ends,
}

/// A named outline of a map file.
pub(crate) struct Outline {
    pub(crate) name: String,
    pub(crate) polygon: Vec<Point>,
    /// An area that is open, or an obstacle.
    pub(crate) available: bool,
}

/// Everything that one picture shows.
pub(crate) struct Picture<'a> {
    pub(crate) grid: &'a Grid,
    pub(crate) areas: &'a [Outline],
    pub(crate) obstacles: &'a [Outline],
    pub(crate) question: &'a Question,
    pub(crate) route: &'a Route,
    pub(crate) layers: &'a [Layer],
}

impl Picture<'_> {
    /// The SVG text.
    pub(crate) fn svg(&self) -> String {
        let mut svg = String::new();
        // Writing to a String does not fail.
        let _ = self.draw(&mut svg);
        svg
    }

    fn draw(&self, svg: &mut String) -> std::fmt::Result {
        let cell = metres(self.grid.parameters().cell_size.wide());
        let width = cell * f64::from(self.grid.width());
        let height = cell * f64::from(self.grid.depth());
        // About a thousand pixels at the longer side.
        let scale = 1000.0 / width.max(height);
        writeln!(
            svg,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.3} {height:.3}" width="{:.0}" height="{:.0}" font-family="sans-serif" stroke-linejoin="round">"#,
            width * scale,
            height * scale
        )?;
        writeln!(svg, r##"<rect width="100%" height="100%" fill="#39424e"/>"##)?;
        let stroke = 1.5 / scale;
        let mut layers = self.layers.to_vec();
        layers.sort_unstable();
        layers.dedup();
        for layer in layers {
            let name = layer.to_possible_value();
            let name = name.as_ref().map_or("", |value| value.get_name());
            writeln!(svg, r#"<g id="{name}" stroke-width="{stroke:.4}">"#)?;
            match layer {
                Layer::Cells => self.cells(svg, "#e8e4d8", |_| true)?,
                Layer::Unreachable => self.unreachable(svg)?,
                Layer::Areas => self.outlines(svg, self.areas, "none", "#2f7d5b")?,
                Layer::Obstacles => self.outlines(svg, self.obstacles, "#a8553f88", "#7a3a29")?,
                Layer::Circles => self.circles(svg)?,
                Layer::Chain => self.chain(svg)?,
                Layer::Route => self.route(svg, stroke)?,
                Layer::Ends => self.ends(svg, stroke)?,
            }
            writeln!(svg, "</g>")?;
        }
        writeln!(svg, "</svg>")
    }

    /// Walkable cells for which `shown` holds, as one path of runs.
    fn cells(&self, svg: &mut String, fill: &str, shown: impl Fn(Cell) -> bool) -> std::fmt::Result {
        let cell = metres(self.grid.parameters().cell_size.wide());
        let depth = f64::from(self.grid.depth());
        write!(svg, r#"<path stroke="none" fill="{fill}" d=""#)?;
        for z in 0..self.grid.depth() {
            let y = (depth - 1.0 - f64::from(z)) * cell;
            let mut x = 0;
            while x < self.grid.width() {
                let start = x;
                while x < self.grid.width() && self.grid.is_walkable(Cell { x, z }) && shown(Cell { x, z }) {
                    x += 1;
                }
                if x > start {
                    let run = f64::from(x - start) * cell;
                    write!(
                        svg,
                        "M{:.3} {y:.3}h{run:.3}v{cell:.3}h-{run:.3}z",
                        f64::from(start) * cell
                    )?;
                } else {
                    x += 1;
                }
            }
        }
        writeln!(svg, r#""/>"#)
    }

    fn unreachable(&self, svg: &mut String) -> std::fmt::Result {
        let start = self.route.cells.first().map(|&(x, z)| Cell { x, z });
        let start = start.or_else(|| self.grid.cell_of(self.question.from));
        let Some(component) = start.and_then(|cell| self.grid.component_of(cell)) else {
            return Ok(());
        };
        self.cells(svg, "#b9b4a6", |cell| {
            self.grid.component_of(cell) != Some(component)
        })
    }

    fn outlines(&self, svg: &mut String, outlines: &[Outline], fill: &str, stroke: &str) -> std::fmt::Result {
        for outline in outlines {
            let dash = if outline.available {
                ""
            } else {
                r#" stroke-dasharray="0.4 0.3""#
            };
            write!(svg, r#"<polygon fill="{fill}" stroke="{stroke}"{dash} points=""#)?;
            self.points(svg, &outline.polygon)?;
            writeln!(svg, r#""><title>{}</title></polygon>"#, escaped(&outline.name))?;
        }
        Ok(())
    }

    fn circles(&self, svg: &mut String) -> std::fmt::Result {
        for Circle { centre, radius } in &self.question.obstacles {
            let (x, y) = self.place(*centre);
            let radius = metres(radius.wide());
            writeln!(
                svg,
                r##"<circle cx="{x:.3}" cy="{y:.3}" r="{radius:.3}" fill="#d9822b88" stroke="#8f4f0e"/>"##
            )?;
        }
        Ok(())
    }

    fn chain(&self, svg: &mut String) -> std::fmt::Result {
        let cell = metres(self.grid.parameters().cell_size.wide());
        for &(x, z) in &self.route.cells {
            let (x, y) = self.place(self.grid.centre_of(Cell { x, z }));
            let corner = cell * 0.35;
            writeln!(
                svg,
                r##"<rect x="{:.3}" y="{:.3}" width="{:.3}" height="{:.3}" fill="#7fb2e5"/>"##,
                x - corner,
                y - corner,
                2.0 * corner,
                2.0 * corner
            )?;
        }
        Ok(())
    }

    fn route(&self, svg: &mut String, stroke: f64) -> std::fmt::Result {
        if self.route.waypoints.is_empty() {
            return Ok(());
        }
        let mut points = vec![self.question.from];
        points.extend_from_slice(&self.route.waypoints);
        write!(
            svg,
            r##"<polyline fill="none" stroke="#1f4e9c" stroke-width="{:.4}" points=""##,
            2.0 * stroke
        )?;
        self.points(svg, &points)?;
        writeln!(svg, r#""/>"#)?;
        for (index, point) in self.route.waypoints.iter().enumerate() {
            let (x, y) = self.place(*point);
            writeln!(
                svg,
                r##"<circle cx="{x:.3}" cy="{y:.3}" r="{:.4}" fill="#1f4e9c"><title>{}: {}, {}</title></circle>"##,
                3.0 * stroke,
                index + 1,
                point.x,
                point.z
            )?;
        }
        Ok(())
    }

    fn ends(&self, svg: &mut String, stroke: f64) -> std::fmt::Result {
        for (point, colour, name) in [
            (self.question.from, "#2e9e4f", "from"),
            (self.question.to, "#c8324a", "to"),
        ] {
            let (x, y) = self.place(point);
            writeln!(
                svg,
                r#"<circle cx="{x:.3}" cy="{y:.3}" r="{:.4}" fill="none" stroke="{colour}" stroke-width="{:.4}"><title>{name} {}, {}</title></circle>"#,
                5.0 * stroke,
                2.0 * stroke,
                point.x,
                point.z
            )?;
        }
        Ok(())
    }

    fn points(&self, svg: &mut String, points: &[Point]) -> std::fmt::Result {
        for point in points {
            let (x, y) = self.place(*point);
            write!(svg, "{x:.3},{y:.3} ")?;
        }
        Ok(())
    }

    /// Metres from the picture's upper left corner.
    fn place(&self, point: Point) -> (f64, f64) {
        let min = self.grid.min();
        let height = self.grid.parameters().cell_size.wide() * i64::from(self.grid.depth());
        (
            metres(point.x.wide() - min.x.wide()),
            metres(height - (point.z.wide() - min.z.wide())),
        )
    }
}

fn metres(raw: i64) -> f64 {
    raw as f64 / 65536.0
}

/// A name between tags.
fn escaped(name: &str) -> String {
    // Control characters are no XML at all.
    let name: String = name.chars().filter(|character| !character.is_control()).collect();
    name.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
