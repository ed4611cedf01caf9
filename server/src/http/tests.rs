//! What can be called, and what the documents say about it.

use serde_json::Value;

use super::{OPENAPI, ROUTES};

#[test]
fn the_description_names_what_can_be_called_and_nothing_else() {
    let description: Value = serde_json::from_str(OPENAPI).expect("JSON");
    let paths = description["paths"].as_object().expect("paths");
    let mut described: Vec<String> = paths
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("methods");
            methods.keys().map(move |method| format!("{method} {path}"))
        })
        .collect();
    described.sort();
    let mut routes: Vec<String> = ROUTES
        .iter()
        .map(|route| format!("{} {}", route.method, route.path))
        .collect();
    routes.sort();
    assert_eq!(described, routes);
    let documents = include_str!("../../../docs/OPERATIONS.md");
    for route in ROUTES {
        let row = format!("`{} {}`", route.method.to_uppercase(), route.path);
        assert!(
            documents.contains(&row),
            "{row} does not stand in docs/OPERATIONS.md"
        );
    }
    let rows = documents
        .lines()
        .filter(|line| line.starts_with("| `GET ") || line.starts_with("| `POST "))
        .count();
    assert_eq!(rows, ROUTES.len(), "docs/OPERATIONS.md names pages that are none");
}

#[test]
fn parameters_of_a_path_are_described() {
    let description: Value = serde_json::from_str(OPENAPI).expect("JSON");
    for route in ROUTES {
        let operation = &description["paths"][route.path][route.method];
        assert!(
            operation["summary"].is_string(),
            "{} {}",
            route.method,
            route.path
        );
        let described = operation["parameters"].as_array().map_or(0, Vec::len);
        let in_path = route.path.matches('{').count();
        assert!(
            described >= in_path,
            "{} {}: parameters",
            route.method,
            route.path
        );
    }
}
