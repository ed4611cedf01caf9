//! A [`Drawing`] as an SVG picture: text alone, the unit is the metre, and +z is up.

use std::fmt::{self, Write};

use crate::drawing::{Drawing, Form, Shape, Style};
use crate::geometry::Bounds;
use crate::{FRACTION_BITS, Fixed, Point};

/// Longer side of the picture where the SVG says no other size, pixels.
const PIXELS: i64 = 1200;

/// The looks. Widths are in `u`, a hundredth of the picture's longer side, put in by the painter.
const STYLES: &[(Style, &str, &str)] = &[
    (Style::Ground, "ground", "fill:#fffdf7"),
    (
        Style::Area,
        "area",
        "fill:#fffdf7;stroke:#b8ad98;stroke-width:.12u",
    ),
    (
        Style::ClosedArea,
        "closed",
        "fill:url(#hatch);stroke:#c2410c;stroke-width:.12u;stroke-dasharray:.6u .4u",
    ),
    (Style::Blocked, "blocked", "fill:#d9c3a5;fill-opacity:.6"),
    (
        Style::Obstacle,
        "obstacle",
        "fill:#5b6472;stroke:#39404c;stroke-width:.12u;stroke-linejoin:round",
    ),
    (
        Style::Name,
        "name",
        "fill:#6f6552;text-anchor:middle;dominant-baseline:central;stroke:#fffdf7;stroke-width:.3u;paint-order:stroke",
    ),
    (
        Style::Standing,
        "standing",
        "fill:#f59e0b;fill-opacity:.45;stroke:#b45309;stroke-width:.15u",
    ),
    (Style::Expanded, "expanded", "fill:#60a5fa;fill-opacity:.25"),
    (
        Style::Chain,
        "chain",
        "fill:none;stroke:#60a5fa;stroke-width:.3u;stroke-linejoin:round;stroke-linecap:round",
    ),
    (
        Style::Snap,
        "snap",
        "fill:none;stroke:#7c3aed;stroke-width:.25u;stroke-dasharray:.5u .4u",
    ),
    (
        Style::Octagon,
        "octagon",
        "fill:#f59e0b;fill-opacity:.15;stroke:#b45309;stroke-width:.1u;stroke-dasharray:.4u .3u",
    ),
    (
        Style::Link,
        "link",
        "fill:none;stroke:#0f766e;stroke-opacity:.45;stroke-width:.08u",
    ),
    (
        Style::EdgeNormal,
        "edge-normal",
        "fill:none;stroke:#9333ea;stroke-width:.1u",
    ),
    (
        Style::CornerNormal,
        "corner-normal",
        "fill:none;stroke:#db2777;stroke-width:.15u",
    ),
    (
        Style::Concave,
        "concave",
        "fill:#db2777;stroke:#fff;stroke-width:.1u",
    ),
    (Style::Node, "node", "fill:#0f766e;stroke:#fff;stroke-width:.1u"),
    (
        Style::StartLink,
        "start-link",
        "fill:none;stroke:#16a34a;stroke-width:.12u;stroke-dasharray:.5u .3u",
    ),
    (
        Style::EndLink,
        "end-link",
        "fill:none;stroke:#dc2626;stroke-width:.12u;stroke-dasharray:.5u .3u",
    ),
    (
        Style::Path,
        "path",
        "fill:none;stroke:#1d4ed8;stroke-width:.55u;stroke-linejoin:round;stroke-linecap:round",
    ),
    (
        Style::Waypoint,
        "waypoint",
        "fill:#fff;stroke:#1d4ed8;stroke-width:.25u",
    ),
    (
        Style::Start,
        "start",
        "fill:#16a34a;stroke:#fff;stroke-width:.25u",
    ),
    (Style::End, "end", "fill:#dc2626;stroke:#fff;stroke-width:.25u"),
    (
        Style::UnreachedEnd,
        "unreached",
        "fill:#fff;stroke:#dc2626;stroke-width:.4u",
    ),
];

/// What the legend says of a style; the names stand in the picture itself.
const fn meaning(style: Style) -> Option<&'static str> {
    Some(match style {
        Style::Ground => "walkable",
        Style::Area => "area",
        Style::ClosedArea => "closed area",
        Style::Blocked => "too near",
        Style::Obstacle => "obstacle",
        Style::Name => return None,
        Style::Standing => "somebody stands",
        Style::Expanded => "expanded",
        Style::Chain => "chain of cells",
        Style::Snap => "snapped",
        Style::Octagon => "octagon around somebody",
        Style::Link => "link",
        Style::EdgeNormal => "normal of an edge",
        Style::CornerNormal => "normal of a corner",
        Style::Concave => "concave point",
        Style::Node => "node",
        Style::StartLink => "link of the start",
        Style::EndLink => "link of the end",
        Style::Path => "path",
        Style::Waypoint => "waypoint",
        Style::Start => "start",
        Style::End => "end",
        Style::UnreachedEnd => "end, not reached",
    })
}

impl Drawing {
    /// The picture, with a scale bar and a legend of the styles in it, and a title for screen readers and browser tabs.
    pub fn to_svg(&self, title: &str) -> String {
        Painter::new(self).paint(self, title)
    }
}

/// A length of the picture, raw; in `i64`, since margins reach beyond what a coordinate may be.
#[derive(Clone, Copy)]
struct Length(i64);

impl fmt::Display for Length {
    /// With the digits that show: a thousandth of a metre.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thousandths = (self.0 * 1000 + (1 << (FRACTION_BITS - 1))) >> FRACTION_BITS;
        let (whole, rest) = (thousandths.abs() / 1000, thousandths.abs() % 1000);
        if thousandths < 0 {
            f.write_str("-")?;
        }
        write!(f, "{whole}")?;
        if rest != 0 {
            let digits = format!("{rest:03}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        Ok(())
    }
}

struct Painter {
    svg: String,
    /// A hundredth of the longer side, raw; at least 1.
    unit: i64,
    /// Left, top (of −z), right and bottom of the map with its margin, raw.
    left: i64,
    top: i64,
    right: i64,
    bottom: i64,
}

impl Painter {
    fn new(drawing: &Drawing) -> Self {
        let Bounds { min, max } = drawing.bounds;
        let (width, depth) = (max.x.wide() - min.x.wide(), max.z.wide() - min.z.wide());
        let unit = (width.max(depth) / 100).max(1);
        let margin = 2 * unit;
        Self {
            svg: String::new(),
            unit,
            left: min.x.wide() - margin,
            top: -max.z.wide() - margin,
            right: max.x.wide() + margin,
            bottom: -min.z.wide() + margin,
        }
    }

    fn paint(mut self, drawing: &Drawing, title: &str) -> String {
        let mut body = std::mem::take(&mut self.svg);
        for layer in &drawing.layers {
            self.line(format_args!("<g id=\"{}\">", layer.name));
            for shape in &layer.shapes {
                self.shape(shape);
            }
            self.line(format_args!("</g>"));
        }
        self.scale_bar();
        let end = self.legend(drawing);
        std::mem::swap(&mut body, &mut self.svg);

        let (width, height) = (self.right - self.left, end - self.top);
        let longer = width.max(height);
        let pixels = |side: i64| (side * PIXELS / longer).max(1);
        self.line(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{} {} {} {}\" width=\"{}\" height=\"{}\" role=\"img\">",
            Length(self.left),
            Length(self.top),
            Length(width),
            Length(height),
            pixels(width),
            pixels(height),
        ));
        self.line(format_args!("<title>{}</title>", Escaped(title)));
        self.style_sheet();
        self.line(format_args!(
            "<rect class=\"paper\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            Length(self.left),
            Length(self.top),
            Length(width),
            Length(height),
        ));
        self.svg.push_str(&body);
        self.line(format_args!("</svg>"));
        self.svg
    }

    fn style_sheet(&mut self) {
        let unit = Length(self.unit);
        self.line(format_args!(
            "<defs><pattern id=\"hatch\" width=\"{unit}\" height=\"{unit}\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate(45)\"><rect width=\"{unit}\" height=\"{unit}\" fill=\"#fbe4d6\"/>\
             <rect width=\"{}\" height=\"{unit}\" fill=\"#ea8f63\"/></pattern></defs>",
            Length(self.unit / 4),
        ));
        self.line(format_args!("<style>"));
        self.line(format_args!(
            "text{{font-family:system-ui,'DejaVu Sans',sans-serif}}"
        ));
        self.line(format_args!(".paper{{fill:#e4dfd3}}"));
        self.line(format_args!(
            ".note{{fill:#4a453b;font-size:{}px}}",
            Length(self.font())
        ));
        let width = Length(self.unit * 3 / 10);
        self.line(format_args!(
            ".scale{{fill:none;stroke:#4a453b;stroke-width:{width}}}"
        ));
        for (_, class, looks) in STYLES {
            let looks = self.in_units(looks);
            self.line(format_args!(".{class}{{{looks}}}"));
        }
        self.line(format_args!("</style>"));
    }

    /// `.55u` → the metres that are.
    fn in_units(&self, looks: &str) -> String {
        let mut result = String::new();
        for part in looks.split_inclusive([':', ' ', ';']) {
            let (value, end) = match part.strip_suffix([':', ' ', ';']) {
                Some(value) => (value, &part[value.len()..]),
                None => (part, ""),
            };
            let hundredths = value
                .strip_prefix('.')
                .and_then(|value| value.strip_suffix('u'))
                .and_then(|digits| format!("{digits:0<2}").parse::<i64>().ok());
            match hundredths {
                // At least a thousandth of a metre, or nothing would show.
                Some(hundredths) => write!(result, "{}{end}", Length((self.unit * hundredths / 100).max(66))),
                None => write!(result, "{part}"),
            }
            .expect("text takes everything");
        }
        result
    }

    fn shape(&mut self, shape: &Shape) {
        let class = STYLES
            .iter()
            .find(|(style, _, _)| *style == shape.style)
            .map_or("", |(_, class, _)| class);
        let (tag, place) = match &shape.form {
            Form::Polygon(points) => ("polygon", format!("points=\"{}\"", Points(points))),
            Form::Polyline(points) => ("polyline", format!("points=\"{}\"", Points(points))),
            Form::Circle { centre, radius } => (
                "circle",
                format!(
                    "cx=\"{}\" cy=\"{}\" r=\"{}\"",
                    centre.x,
                    Length(-centre.z.wide()),
                    radius
                ),
            ),
            Form::Dot(point) => {
                let radius = match shape.style {
                    Style::Start | Style::End | Style::UnreachedEnd => self.unit * 9 / 10,
                    _ => self.unit / 2,
                };
                let (x, y) = (point.x, Length(-point.z.wide()));
                (
                    "circle",
                    format!("cx=\"{x}\" cy=\"{y}\" r=\"{}\"", Length(radius)),
                )
            }
            Form::Rectangles(rectangles) => ("path", format!("d=\"{}\"", Rectangles(rectangles))),
            Form::Label { at, text, width } => return self.label(class, *at, text, *width),
        };
        if shape.title.is_empty() {
            self.line(format_args!("<{tag} class=\"{class}\" {place}/>"));
        } else {
            let title = Escaped(&shape.title);
            self.line(format_args!(
                "<{tag} class=\"{class}\" {place}><title>{title}</title></{tag}>"
            ));
        }
    }

    /// Text as large as its room allows, and none where it could not be read.
    fn label(&mut self, class: &str, at: Point, text: &str, width: Fixed) {
        let fitting = width.wide() * 10 / (6 * text.chars().count().max(1) as i64);
        let size = fitting.min(self.unit * 16 / 10);
        if size < self.unit * 7 / 10 {
            return;
        }
        let (x, y) = (at.x, Length(-at.z.wide()));
        let (size, text) = (Length(size), Escaped(text));
        self.line(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" font-size=\"{size}\">{text}</text>"
        ));
    }

    /// A bar of 1, 2 or 5 × 10^k metres, at most a quarter of the width, at the map's lower left.
    fn scale_bar(&mut self) {
        let room = (self.right - self.left) / 4;
        let steps = (0..).flat_map(|power: u32| [1i64, 2, 5].map(|step| step * 10i64.pow(power)));
        // Centimetres.
        let length = steps
            .take_while(|centimetres| (centimetres << FRACTION_BITS) / 100 <= room)
            .last()
            .unwrap_or(1);
        let raw = (length << FRACTION_BITS) / 100;
        let (x, y) = (self.left + 2 * self.unit, self.bottom + self.unit);
        let tick = self.unit / 2;
        self.line(format_args!(
            "<path class=\"scale\" d=\"M{} {}v{}h{}v{}\"/>",
            Length(x),
            Length(y - tick),
            Length(tick),
            Length(raw),
            Length(-tick)
        ));
        let text = if length >= 100 {
            format!("{} m", length / 100)
        } else {
            format!("{length} cm")
        };
        self.note(x + raw + self.unit, y, &text);
    }

    /// A sample and a word for each style that occurs; returns where the picture ends.
    fn legend(&mut self, drawing: &Drawing) -> i64 {
        let font = self.font();
        let (row, sample) = (font * 2, self.unit * 3);
        let start = self.left + 2 * self.unit;
        let (mut x, mut y) = (start, self.bottom + self.unit + row);
        let present = |style: Style| {
            let shapes = drawing.layers.iter().flat_map(|layer| &layer.shapes);
            shapes.into_iter().any(|shape| shape.style == style)
        };
        for &(style, class, _) in STYLES {
            let Some(text) = meaning(style).filter(|_| present(style)) else {
                continue;
            };
            let width = sample + self.unit + text_width(text, font) + 2 * self.unit;
            if x > start && x + width > self.right {
                (x, y) = (start, y + row);
            }
            let middle = y - font / 3;
            match style {
                Style::Path
                | Style::Chain
                | Style::Snap
                | Style::Link
                | Style::EdgeNormal
                | Style::CornerNormal
                | Style::StartLink
                | Style::EndLink => self.line(format_args!(
                    "<path class=\"{class}\" d=\"M{} {}h{}\"/>",
                    Length(x),
                    Length(middle),
                    Length(sample)
                )),
                Style::Standing
                | Style::Waypoint
                | Style::Concave
                | Style::Node
                | Style::Start
                | Style::End
                | Style::UnreachedEnd => {
                    let radius = if matches!(style, Style::Waypoint | Style::Concave | Style::Node) {
                        self.unit / 2
                    } else {
                        self.unit * 9 / 10
                    };
                    self.line(format_args!(
                        "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>",
                        Length(x + sample / 2),
                        Length(middle),
                        Length(radius)
                    ));
                }
                _ => self.line(format_args!(
                    "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                    Length(x),
                    Length(middle - font / 2),
                    Length(sample),
                    Length(font)
                )),
            }
            self.note(x + sample + self.unit, y, text);
            x += width;
        }
        y + row / 2
    }

    fn note(&mut self, x: i64, y: i64, text: &str) {
        self.line(format_args!(
            "<text class=\"note\" x=\"{}\" y=\"{}\">{}</text>",
            Length(x),
            Length(y),
            Escaped(text)
        ));
    }

    /// Height of the notes' letters, raw.
    fn font(&self) -> i64 {
        self.unit * 18 / 10
    }

    fn line(&mut self, text: fmt::Arguments<'_>) {
        writeln!(self.svg, "{text}").expect("text takes everything");
    }
}

/// About how wide a text is: six tenths of the font's size per character.
fn text_width(text: &str, font: i64) -> i64 {
    text.chars().count() as i64 * font * 6 / 10
}

/// `x,y x,y …` with y = −z.
struct Points<'a>(&'a [Point]);

impl fmt::Display for Points<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, point) in self.0.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{},{}", point.x, Length(-point.z.wide()))?;
        }
        Ok(())
    }
}

/// One subpath per rectangle.
struct Rectangles<'a>(&'a [Bounds]);

impl fmt::Display for Rectangles<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Bounds { min, max } in self.0 {
            let (left, right) = (Length(min.x.wide()), Length(max.x.wide()));
            let (top, bottom) = (Length(-max.z.wide()), Length(-min.z.wide()));
            write!(f, "M{left} {top}H{right}V{bottom}H{left}z")?;
        }
        Ok(())
    }
}

/// Text as XML takes it: names come from files that anybody may have written.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                // Not allowed in XML, escaped or not.
                c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => f.write_char('\u{fffd}')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
