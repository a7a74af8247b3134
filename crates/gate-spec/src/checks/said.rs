//! What is said of the checks of several scenarios, each thing once.

use crate::problem::Problem;

/// The problems of all scenarios: one that all have as it is, others with the scenarios that have them.
pub(super) fn once(said: Vec<(Option<&str>, Vec<Problem>)>) -> Vec<Problem> {
    let of_all = said.len();
    let mut found: Vec<(Problem, Vec<&str>)> = Vec::new();
    for (name, problems) in said {
        for problem in problems {
            let names = name.into_iter();
            match found.iter_mut().find(|(known, _)| *known == problem) {
                Some((_, known)) => known.extend(names),
                None => found.push((problem, names.collect())),
            }
        }
    }
    let attributed = |(problem, mut names): (Problem, Vec<&str>)| {
        names.dedup();
        let is_told = |name: &&str| problem.message.contains(&format!("scenarios.{name}"));
        if of_all < 2 || names.len() == of_all || names.iter().all(is_told) {
            return problem;
        }
        let word = if names.len() == 1 { "scenario" } else { "scenarios" };
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        Problem { message: format!("{} ({word} {})", problem.message, names.join(", ")), ..problem }
    };
    found.into_iter().map(attributed).collect()
}
