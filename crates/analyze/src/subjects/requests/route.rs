//! Routes: method and path of requests, so that those that differ in ids alone are one.

use serde_json::Value;

/// Bytes of fields that are looked at.
const MAX_FIELDS: usize = 16 << 10;

/// Method and path by the fields of a request; empty when they do not say it. The view `request_time` has the same route.
pub fn route(start: &str, end: &str) -> String {
    let read = |text: &str| if text.len() <= MAX_FIELDS { serde_json::from_str(text).ok() } else { None };
    let fields: [Option<Value>; 2] = [read(start), read(end)];
    let named = |names: &[&str]| -> Option<String> {
        names.iter().find_map(|name| {
            fields.iter().flatten().find_map(|fields| {
                let field = fields.get(name).or_else(|| fields.get("tags")?.get(name));
                field.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
            })
        })
    };
    let method = named(&["method", "Request.Method", "http.request.method", "http.method", "Method"]);
    let template = named(&["http.route", "route", "Request.RouteTemplate"]);
    let path = template.or_else(|| {
        let path = named(&[
            "path", "Request.Path", "url.path", "http.target", "pathAndQuery", "Request.RequestUri", "url.full",
            "http.url", "RequestUri",
        ])?;
        Some(plain(&path))
    });
    match (method, path) {
        (Some(method), Some(path)) => format!("{method} {path}"),
        (None, Some(path)) => path,
        (Some(method), None) => method,
        (None, None) => String::new(),
    }
}

/// A path without its query, and with `{id}` for a number or a GUID.
fn plain(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_guid = |part: &str| {
        let lengths = part.split('-').map(|part| part.len());
        lengths.eq([8, 4, 4, 4, 12]) && part.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    };
    let part = |part| if is_number(part) || is_guid(part) { "{id}" } else { part };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_come_from_the_fields_that_sources_have() {
        assert_eq!(route(r#"{"path":"/shop/17/items?all=1","method":"GET"}"#, ""), "GET /shop/{id}/items");
        assert_eq!(route(r#"{"Request.Path":"/a/0f8fad5b-d9cb-469f-a165-70867728950e"}"#, ""), "/a/{id}");
        assert_eq!(route(r#"{"path":"/shop/17"}"#, r#"{"tags":{"http.route":"/shop/{item}"}}"#), "/shop/{item}");
        assert_eq!((route("no json", ""), route("[1]", "{}")), (String::new(), String::new()));
        assert_eq!(plain("/face/decade/2024/a1"), "/face/decade/{id}/a1", "numbers and GUIDs alone");
    }
}
