//! The debug picture (spec 7.1): concave points, links, normals, start and end links, the path, each a layer of its own.

use super::exact::Vector;
use super::ground::View;
use super::nodes::{UNIT_BITS, unit};
use super::planner::PolygonPlanner;
use super::reach::Reach;
use super::search::Field;
use crate::drawing::{Form, Shape, Style, shape};
use crate::geometry::Bounds;
use crate::{Drawing, Fixed, Point, Query, Route};

impl PolygonPlanner {
    /// The map as it is now, with the graph for an agent: the layers `areas`, `obstacles`, `names`, `links`, `normals`,
    /// `concave`.
    pub fn picture(&self, agent_radius: Fixed) -> Drawing {
        let bounds = self.map.areas().map(|(area, _)| *area.polygon.bounds());
        let mut drawing = Drawing {
            bounds: bounds.reduce(Bounds::union).expect("a map has an area"),
            layers: Vec::new(),
        };
        drawing.push_areas(self.map.areas());
        drawing.push_obstacles(self.map.obstacles());
        drawing.push_names(self.map.areas());
        let graph = self.graph_for(agent_radius);
        let mut links = Vec::new();
        for (index, node) in (0..).zip(&graph.nodes) {
            // Each link once.
            for link in graph.links_of(index).iter().filter(|link| link.node > index) {
                let other = &graph.nodes[link.node as usize];
                links.push(line(Style::Link, node.position, other.position));
            }
        }
        drawing.push_layer("links", links);
        let extent = Vector::between(drawing.bounds.min, drawing.bounds.max);
        let mut normals = self.edge_normals((extent.x.max(extent.z) / 80).max(1));
        let pushed = graph.nodes.iter().filter(|node| node.position != node.corner);
        normals.extend(pushed.map(|node| line(Style::CornerNormal, node.corner, node.position)));
        drawing.push_layer("normals", normals);
        let dot = |style: Style, point: Point, name: &str, index: usize| Shape {
            style,
            form: Form::Dot(point),
            title: format!("{name} {index}: {}, {}", point.x, point.z),
        };
        let corners = graph.nodes.iter().enumerate();
        let nodes = graph.nodes.iter().enumerate();
        let concave = corners.map(|(index, node)| dot(Style::Concave, node.corner, "corner", index));
        let nodes = nodes
            .filter(|(_, node)| node.position != node.corner)
            .map(|(index, node)| dot(Style::Node, node.position, "node", index));
        drawing.push_layer("concave", concave.chain(nodes).collect());
        drawing
    }

    /// Adds a query and its answer: the layers `standing`, `octagons`, `start-links`, `end-links`, `path`, `ends`.
    pub fn add_query_picture(&mut self, drawing: &mut Drawing, query: &Query<'_>, route: &Route) {
        drawing.push_standing(query.also);
        // A start that was moved is the first waypoint.
        let is_free = self.border.contains(query.from);
        let start = route.waypoints.first().filter(|_| !is_free).copied();
        let end = route.waypoints.last().copied().unwrap_or(query.to);
        let mut octagons = Vec::new();
        let mut links = [Vec::new(), Vec::new()];
        self.with_field(query, |field, reach| {
            octagons.extend(field.ground.octagons.iter().map(|octagon| {
                let corners = octagon.corners();
                let corners = corners.iter().filter_map(|&offset| octagon.corner(offset));
                shape(Style::Octagon, Form::Polygon(corners.collect()))
            }));
            let ends = [start.unwrap_or(query.from), end];
            reach.begin(field, ends[0]);
            for ((point, style), links) in ends
                .into_iter()
                .zip([Style::StartLink, Style::EndLink])
                .zip(&mut links)
            {
                links.extend(nodes_in_sight(field, reach, point).map(|node| line(style, point, node)));
            }
        });
        let [start_links, end_links] = links;
        drawing.push_layer("octagons", octagons);
        drawing.push_layer("start-links", start_links);
        drawing.push_layer("end-links", end_links);
        drawing.push_route(query.from, query.to, route);
    }

    /// A line of this length from the middle of each edge into the free space.
    fn edge_normals(&self, length: i64) -> Vec<Shape> {
        let edges = self.border.edges.iter();
        edges
            .map(|edge| {
                let ends = [edge.from, edge.to].map(|vertex| self.border.vertices[vertex as usize].floor);
                let middle = |one: Fixed, other: Fixed| ((one.wide() + other.wide()) / 2) as i32;
                let foot = Point::from_raw(middle(ends[0].x, ends[1].x), middle(ends[0].z, ends[1].z));
                let normal = unit(edge.along.left());
                let offset =
                    |component: i64| ((i128::from(component) * i128::from(length)) >> UNIT_BITS) as i32;
                let tip = Point::from_raw(
                    foot.x.raw().saturating_add(offset(normal.x)),
                    foot.z.raw().saturating_add(offset(normal.z)),
                );
                line(Style::EdgeNormal, foot, tip)
            })
            .collect()
    }
}

fn nodes_in_sight<'a>(
    field: &'a Field<'_>,
    reach: &'a mut Reach,
    point: Point,
) -> impl Iterator<Item = Point> + 'a {
    let count = field.graph.nodes.len() + field.corners.len();
    let is_free = field.ground.border.contains(point);
    let mut view = View::default();
    (0..count as u32)
        .filter(move |&node| is_free && reach.is_in_sight(field, &mut view, node, point))
        .map(|node| field.position(node))
}

fn line(style: Style, from: Point, to: Point) -> Shape {
    shape(style, Form::Polyline(vec![from, to]))
}
