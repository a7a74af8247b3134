//! What GitLab shows beside a merge request and a job.

use gate_model::{Aggregate, Arm, Metric, Percentile, Quantity, Series, Unit, Verdict};
use serde_json::{Map, Value, json};

use crate::bounded::{NAME, bounded};
use crate::escape;
use crate::layout::clip;
use crate::words::needs_reason;

/// GitLab takes this many annotations of one job.
const LINKS: usize = 20;

/// How long an address may be, in characters: browsers take no longer ones.
const ADDRESS: usize = 2_000;

/// GitLab's `load_performance` report, which has the form of a k6 summary: milliseconds and shares.
///
/// The merge request's widget compares four numbers with the target branch's: `checks` (of all checks those that hold),
/// `http_reqs.rate` (requests sent per second), and P90 and P95 of `http_req_waiting`, which here is the TTFT. Of several
/// gates or scenarios these are the highest of all, and `http_req_waiting{gate:…,scenario:…}` has those of each.
/// `http_req_duration` is the end-to-end time. A number that the run does not have is left out; `http_req_waiting`
/// too, unless both of its percentiles are known, since the widget takes a missing one for a change for the worse.
#[must_use]
pub fn load_performance(verdicts: &[Verdict]) -> String {
    let verdicts = bounded(verdicts);
    let mut metrics = Map::new();
    let of_series = [("http_req_waiting", Series::Ttft, true), ("http_req_duration", Series::E2e, false)];
    for (name, series, both) in of_series {
        let parts: Vec<(String, Times)> = verdicts.iter().flat_map(|verdict| by_scenario(verdict, series)).collect();
        let highest = parts.iter().fold(Times::default(), |all, (_, times)| all.highest(*times));
        let is_whole = |times: &Times| !both || (times.p90.is_some() && times.p95.is_some());
        let several = parts.len() > 1;
        // A part that lacks one of both would make the highest of that one too low.
        let shown = (!both || parts.iter().all(|(_, times)| is_whole(times))).then_some((name.to_owned(), highest));
        let tagged = parts.into_iter().filter(|_| several).map(|(tags, times)| (format!("{name}{{{tags}}}"), times));
        for (name, times) in shown.into_iter().chain(tagged).filter(|(_, times)| is_whole(times)) {
            let fields = times.fields();
            if !fields.is_empty() {
                metrics.insert(name, Value::Object(fields));
            }
        }
    }
    if let Some(requests) = requests(&verdicts) {
        metrics.insert("http_reqs".to_owned(), requests);
    }
    let checks = verdicts.iter().flat_map(|verdict| &verdict.checks);
    let (fails, passes): (Vec<_>, Vec<_>) = checks.partition(|check| needs_reason(check));
    let all = passes.len() + fails.len();
    if all > 0 {
        let value = passes.len() as f64 / all as f64;
        metrics.insert("checks".to_owned(), json!({"passes": passes.len(), "fails": fails.len(), "value": value}));
    }
    format!("{:#}\n", json!({ "metrics": metrics }))
}

/// GitLab's `annotations` report: links on the job's page, each a label and an address.
///
/// GitLab takes at most 20; what is no address of `http` or `https` is left out. A label is cut to 200 characters.
#[must_use]
pub fn gitlab_annotations(links: &[(String, String)]) -> String {
    let links = links.iter().filter(|(_, url)| escape::is_web(url) && url.chars().count() <= ADDRESS).take(LINKS);
    let links = links.map(|(label, url)| {
        let label = clip(escape::terminal(label).trim(), NAME);
        json!({"external_link": {"label": label, "url": escape::web_address(url)}})
    });
    format!("{:#}\n", json!({"gate": links.collect::<Vec<_>>()}))
}

/// What is known of a series, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    mean: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
    p95: Option<f64>,
    max: Option<f64>,
}

impl Times {
    /// The higher of each.
    fn highest(self, other: Self) -> Self {
        let higher = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
        Self {
            mean: higher(self.mean, other.mean),
            p50: higher(self.p50, other.p50),
            p90: higher(self.p90, other.p90),
            p95: higher(self.p95, other.p95),
            max: higher(self.max, other.max),
        }
    }

    /// The same by k6's names.
    fn fields(self) -> Map<String, Value> {
        let all = [("avg", self.mean), ("med", self.p50), ("p(90)", self.p90), ("p(95)", self.p95), ("max", self.max)];
        all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))).collect()
    }
}

/// The times of each scenario, after k6's way to name a part.
fn by_scenario(verdict: &Verdict, series: Series) -> Vec<(String, Times)> {
    let mut scenarios: Vec<u16> = verdict.figures.iter().map(|figure| figure.scenario).collect();
    scenarios.extend(verdict.checks.iter().map(|check| check.check.scenario));
    scenarios.sort_unstable();
    scenarios.dedup();
    let named = scenarios.into_iter().filter_map(|scenario| {
        let value = |aggregate: Aggregate| milliseconds(verdict, scenario, Metric::Series(series, aggregate));
        let percentile =
            |thousandths: u32| value(Aggregate::Percentile(Percentile::from_thousandths(thousandths).ok()?));
        let times = Times {
            mean: value(Aggregate::Mean),
            p50: percentile(50_000),
            p90: percentile(90_000),
            p95: percentile(95_000),
            max: value(Aggregate::Max),
        };
        let name = verdict.run.scenarios.get(usize::from(scenario)).unwrap_or(&verdict.name);
        let tags = format!("gate:{},scenario:{}", tag(&verdict.name), tag(name));
        (!times.fields().is_empty()).then_some((tags, times))
    });
    named.collect()
}

/// A name without what divides tags.
fn tag(name: &str) -> String {
    escape::terminal(name).replace([',', ':', '{', '}'], "_")
}

/// A time of the target's, from its figures or from what a check saw; none that is no finite number.
fn milliseconds(verdict: &Verdict, scenario: u16, metric: Metric) -> Option<f64> {
    let is_target = |arm: Arm| arm == Arm::Target;
    let figures = verdict.figures.iter().filter(|figure| is_target(figure.arm));
    let figure = figures.filter(|figure| (figure.scenario, figure.metric) == (scenario, metric));
    let check = verdict.checks.iter().filter(|check| (check.check.scenario, check.check.metric) == (scenario, metric));
    let seen = figure.filter_map(|figure| figure.value).chain(check.filter_map(|check| check.seen)).next();
    let millis = |Quantity { value, unit }: Quantity| (unit == Unit::Time && value.is_finite()).then_some(value / 1e6);
    seen.and_then(millis)
}

/// How many requests were sent, and how many a second while they were.
fn requests(verdicts: &[Verdict]) -> Option<Value> {
    let count: u64 = verdicts.iter().map(|verdict| u64::from(verdict.run.sent)).sum();
    let lasted = |verdict: &Verdict| {
        let rate = verdict.run.rates.map(|(_, sent)| sent).filter(|rate| rate.is_finite() && *rate > 0.0);
        rate.map_or_else(|| verdict.run.duration.as_secs_f64(), |rate| f64::from(verdict.run.sent) / rate)
    };
    let seconds: f64 = verdicts.iter().filter(|verdict| verdict.run.sent > 0).map(lasted).sum();
    let rate = count as f64 / seconds;
    (seconds > 0.0 && rate.is_finite()).then(|| json!({"count": count, "rate": rate}))
}
