//! The forge's CI file.

use crate::Answers;
use crate::gate::{one_line, quoted};

/// Where GitHub Actions reads it.
pub const CI_GITHUB: &str = ".github/workflows/gate.yml";

/// What GitLab CI includes; its own file stays as it is.
pub const CI_GITLAB: &str = ".gitlab/gate.yml";

/// A workflow for pull requests, for the main branch's runs that later ones are compared with, and for the night.
///
/// `OWNER/gate@REF` stands for the repository and commit that the action is taken from: only whoever sets it up knows them.
#[must_use]
pub fn github(answers: &Answers) -> String {
    let name = &answers.name;
    let key = answers.endpoint.key.as_ref();
    let env = |indent: usize| {
        let space = " ".repeat(indent);
        key.map(|key| format!("{space}env:\n{space}  {key}: ${{{{ secrets.{key} }}}}\n")).unwrap_or_default()
    };
    let target = |indent: usize| {
        let space = " ".repeat(indent);
        let url = answers.endpoint.url.as_ref();
        url.map(|url| format!("{space}target: {}\n", quoted(url))).unwrap_or_default()
    };
    let checkout = "      - uses: actions/checkout@v4\n        with: {fetch-depth: 0}          # baselines are chosen by the commit's history\n";
    format!(
        "# gates/{name}.yaml on every pull request and on main, gates/nightly/{name}.yaml by night. OWNER/gate@REF is where gate's\n\
         # repository lives, pinned to a commit.\nname: gate\non:\n  pull_request: {{}}\n  push: {{branches: [main]}}\n  \
         schedule: [{{cron: \"0 2 * * *\"}}]\npermissions: {{contents: read}}\njobs:\n  gate:\n    \
         if: github.event_name != 'schedule'\n    runs-on: ubuntu-latest\n    timeout-minutes: 30\n    \
         permissions: {{contents: read, pull-requests: write, checks: write}}\n    steps:\n{checkout}      \
         # Start your server here, in the background, if it is not there yet; gate waits for it.\n      \
         - uses: OWNER/gate@REF\n        with:\n          spec: gates/{name}.yaml\n{target}          \
         trust: ${{{{ github.event_name == 'pull_request' && 'base' || 'head' }}}}\n          \
         save-baseline: ${{{{ github.event_name == 'push' }}}}\n{env}  \
         nightly:\n    if: github.event_name == 'schedule'\n    runs-on: ubuntu-latest\n    timeout-minutes: 180\n    \
         permissions: {{contents: read, checks: write}}\n    steps:\n{checkout}      \
         - uses: OWNER/gate@REF\n        with:\n          spec: gates/nightly/{name}.yaml\n{target}          \
         job: nightly\n          args: --long\n          artifact: gate-nightly\n{env}",
        target = target(10),
        env = env(8),
    )
}

/// What `.gitlab-ci.yml` includes: the component for merge requests and the default branch, and a job for the night.
///
/// `OWNER/gate` and `REGISTRY/OWNER/gate` stand for the mirror of gate's repository and its image.
#[must_use]
pub fn gitlab(answers: &Answers) -> String {
    let name = &answers.name;
    let url = answers.endpoint.url.as_ref();
    let target = url.map(|url| format!("      target: {}\n", quoted(url))).unwrap_or_default();
    let key =
        answers.endpoint.key.as_ref().map(|key| format!("# {} is a masked variable of the project.\n", one_line(key)));
    let image = "REGISTRY/OWNER/gate:0.1.0-ci";
    format!(
        "# gates/{name}.yaml on every merge request and on the default branch, gates/nightly/{name}.yaml on schedules. In .gitlab-ci.yml:\n\
         #   include: [{{local: {CI_GITLAB}}}]\n# OWNER/gate is a mirror of gate's repository on this instance, the image its Containerfile's target `ci`.\n{key}\
         include:\n  - component: $CI_SERVER_FQDN/OWNER/gate/gate@0.1.0\n    inputs:\n      image: {image}\n      \
         spec: gates/{name}.yaml\n{target}      schedule-spec: gates/nightly/{name}.yaml\n",
        key = key.unwrap_or_default(),
    )
}
