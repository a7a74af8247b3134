//! Where a key belongs that stands in the wrong map.

use super::join;
use crate::field::{Field, find};
use crate::table::ROOT;

/// The map that a key of this name belongs to, the outermost if there are several; in a scenario one of its own. What is
/// deep inside one block is not meant by a key in another.
pub(super) fn of(name: &str, written_in: &str) -> Option<String> {
    fn search(fields: &'static [Field], path: &str, wanted: (&str, &str, &str), found: &mut Vec<String>) {
        let (scenario, name, written_in) = wanted;
        let is_near = |path: &str| {
            let is_inside = path.starts_with(written_in) || written_in.starts_with(path);
            path.matches('.').count() < 2 || (!written_in.is_empty() && is_inside)
        };
        if !path.is_empty() && find(fields, name).is_some() {
            found.push(path.to_owned());
        }
        for field in fields {
            let (fields, path) = match (field.named(), field.fields()) {
                (Some(fields), _) => (fields, join(&join(path, field.name), scenario)),
                (None, Some(fields)) => (fields, join(path, field.name)),
                (None, None) => continue,
            };
            if is_near(&path) {
                search(fields, &path, wanted, found);
            }
        }
    }
    let scenario = written_in.strip_prefix("scenarios.").map(|rest| rest.split('.').next().unwrap_or(rest));
    let mut found = Vec::new();
    search(ROOT, "", (scenario.unwrap_or("NAME"), name, written_in), &mut found);
    let depth = |path: &String| path.matches('.').count();
    let is_inside = |path: &String| !written_in.is_empty() && path.starts_with(written_in);
    found.retain(|path| depth(path) < 2 || is_inside(path));
    if scenario.is_some() && found.iter().any(is_inside) {
        found.retain(is_inside);
    }
    found.into_iter().min_by_key(depth)
}
