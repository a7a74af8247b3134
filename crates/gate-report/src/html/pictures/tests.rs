use std::collections::BTreeSet;

use gate_model::{
    Against, Brief, CheckOutcome, Nanos, Outcome, PlannedRequest, Quantity, Request, Sample, Series, Side, Spread,
    Usage, Verdict,
};
use proptest::prelude::*;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::{Lot, Names, check, gaps, lengths, rasters, spread};

/// The one picture of a lot.
fn raster(gate: usize, requests: &[Request<'_>], title: &str) -> Option<String> {
    rasters(&[Lot { gate, requests: requests.to_vec(), title }]).pop()
}

const NAMES: Names = Names { target: "target", baseline: "baseline", reference: "reference" };

/// Every element of a drawing: its name and its attributes. It must be well-formed, and no number in it may be odd.
fn elements(svg: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut reader = Reader::from_str(svg);
    reader.config_mut().check_end_names = true;
    let mut elements = Vec::new();
    let mut depth = 0_i32;
    let mut keep = |start: &BytesStart<'_>| {
        let attributes = start.attributes().map(|attribute| {
            let attribute = attribute.unwrap();
            let key = attribute.key.as_ref().to_owned();
            (key, attribute.normalized_value(XmlVersion::Implicit1_0).unwrap().into_owned())
        });
        let attributes: Vec<(String, String)> = attributes.collect();
        for (key, value) in &attributes {
            assert!(!matches!(key.as_str(), "id" | "style" | "onclick"), "{key} in {svg}");
            if ["x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "dx", "d"].contains(&key.as_str())
            {
                assert!(!value.contains("NaN") && !value.contains("inf") && !value.contains('e'), "{key}={value}");
                let decimals =
                    value.split(['.']).skip(1).map(|rest| rest.chars().take_while(char::is_ascii_digit).count());
                assert!(decimals.into_iter().all(|count| count <= 2), "{key}={value}");
            }
            if ["width", "height", "r"].contains(&key.as_str()) {
                assert!(value.trim_end_matches('%').parse::<f64>().unwrap() >= 0.0, "{key}={value}");
            }
        }
        elements.push((start.name().as_ref().to_owned(), attributes));
    };
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) => {
                keep(&start);
                depth += 1;
            }
            Event::Empty(start) => keep(&start),
            Event::End(_) => depth -= 1,
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(depth, 0);
    let label = elements[0].1.iter().find(|(key, _)| key == "aria-label").map(|(_, value)| value.clone());
    assert!(elements[0].0 == "svg" && label.is_some_and(|label| !label.is_empty() && label.chars().count() <= 300));
    elements
}

/// How many shapes of a class there are.
fn count(svg: &str, class: &str) -> usize {
    let has = |(key, value): &(String, String)| key == "class" && value.split(' ').any(|one| one == class);
    elements(svg).iter().filter(|(_, attributes)| attributes.iter().any(has)).count()
}

fn named(svg: &str) -> BTreeSet<String> {
    let names = elements(svg).into_iter().flat_map(|(_, attributes)| attributes);
    names.filter(|(key, _)| key == "data-r").map(|(_, value)| value).collect()
}

fn millis(value: f64) -> Nanos {
    Nanos((value * 1e6) as i64)
}

/// A request that waits, answers and ends as a real one does; every seventh stalls, every eleventh fails.
fn sample(index: u32, slower: f64) -> Sample {
    let noise =
        |salt: u32| f64::from((index.wrapping_mul(2_654_435_761).wrapping_add(salt * 40_503) >> 8) % 1000) / 1000.0;
    let planned = PlannedRequest {
        index,
        at: millis(f64::from(index) * 200.0),
        input_tokens: 100 + (noise(1) * 900.0) as u32,
        ..PlannedRequest::default()
    };
    let mut sample = Sample::unsent(&planned);
    let at = |value: f64| Some(planned.at + millis(value));
    let connected = 2.0 + noise(2) * 30.0 * if index.is_multiple_of(5) { 4.0 } else { 1.0 };
    let first = connected + slower * (120.0 + noise(3) * 200.0 + f64::from(planned.input_tokens) * 0.4);
    (sample.start, sample.writing, sample.sent) = (at(0.1), at(connected), at(connected + 0.2));
    if index % 11 == 10 {
        (sample.outcome, sample.end) = (Outcome::Http5xx, at(connected + 60.0));
        return sample;
    }
    let mut time = first;
    for token in 0..64 {
        sample.record_token(planned.at + millis(time), 1_000);
        let stalls = index % 7 == 3 && token == 20;
        time += if stalls { 300.0 } else { 8.0 + noise(4 + token) * 6.0 };
    }
    (sample.outcome, sample.end) = (Outcome::Ok, sample.last_token);
    sample.usage = Some(Usage { input: Some(u64::from(planned.input_tokens)), output: Some(64), ..Usage::default() });
    sample
}

fn samples(count: u32) -> Vec<Sample> {
    (0..count).map(|index| sample(index, 1.0)).collect()
}

fn requests(samples: &[Sample]) -> Vec<Request<'_>> {
    samples.iter().map(Request::Sample).collect()
}

fn spread_of(of: Option<Against>, n: u32, quantiles: Vec<f64>) -> Spread {
    Spread { scenario: 0, series: Series::Ttft, of, n, quantiles }
}

fn verdict() -> Verdict {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/reports/violated.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_check_shows_its_limit_what_was_seen_and_how_sure_that_is() {
    for (outcome, class) in [
        (CheckOutcome::Met, "p-kept"),
        (CheckOutcome::Violated, "p-broken"),
        (CheckOutcome::Inconclusive { side: Side::Over }, "p-unsure"),
    ] {
        let mut one = verdict().checks.into_iter().find(|one| one.check.bound.absolute().is_some()).unwrap();
        one.outcome = outcome;
        let svg = check(&one).unwrap();
        assert_eq!((count(&svg, class), count(&svg, "p-limit"), count(&svg, "p-allowed")), (1, 1, 1), "{svg}");
        one.seen = one.seen.map(|seen| Quantity { value: f64::INFINITY, ..seen });
        assert_eq!(count(&check(&one).unwrap(), "p-broken"), 1);
        one.seen = None;
        assert_eq!(check(&one), None);
    }
}

#[test]
fn a_raster_has_a_row_for_each_request_and_shares_rows_of_many() {
    let few = samples(50);
    let svg = raster(3, &requests(&few), "a <title>").unwrap();
    assert_eq!((named(&svg).len(), named(&svg).contains("3:49")), (50, true));
    // The legend has one of each.
    let failed = few.iter().filter(|one| one.outcome != Outcome::Ok).count();
    let stalled = few.iter().filter(|one| one.longest_gap > Some(Nanos::from_millis(100))).count();
    assert_eq!((count(&svg, "p-failed"), count(&svg, "p-stall")), (failed + 1, stalled + 1));
    let many = samples(1_000);
    let svg = raster(0, &requests(&many), "many").unwrap();
    assert!(named(&svg).is_empty() && count(&svg, "p-first") <= 151 && svg.contains("7 requests"));
    assert_eq!(raster(0, &[], "none"), None);
    let briefs: Vec<Brief> = few.iter().map(Brief::from).collect();
    let briefs: Vec<Request<'_>> = briefs.iter().map(Request::Brief).collect();
    assert_eq!(named(&raster(0, &briefs, "in short").unwrap()).len(), 50);
    assert_eq!(gaps(&briefs), None);
}

#[test]
fn gaps_and_lengths_are_drawn_where_there_are_any() {
    let few = samples(50);
    assert!(count(&gaps(&requests(&few)).unwrap(), "p-bar") > 3);
    let answered = few.iter().filter(|one| one.first_token.is_some()).count();
    assert_eq!(named(&lengths(0, &requests(&few)).unwrap()).len(), answered);
    assert!(named(&lengths(0, &requests(&samples(2_500))).unwrap()).is_empty());
    assert_eq!((gaps(&[]), lengths(0, &[])), (None, None));
    assert_eq!(lengths(0, &requests(&few[..1])), None, "one length tells nothing");
}

proptest! {
    #[test]
    fn any_spread_is_well_formed(
        quantiles in prop::collection::vec(any::<f64>(), 0..60),
        limits in prop::collection::vec((any::<f64>(), ".{0,100}"), 0..5),
        n in any::<u32>(),
    ) {
        let of = [None, Some(Against::Baseline)].map(|of| spread_of(of, n, quantiles.clone()));
        if let Some(svg) = spread(Series::Ttft, &[&of[0], &of[1]], &limits, NAMES) {
            elements(&svg);
        }
    }

    #[test]
    fn any_request_is_well_formed(
        times in prop::collection::vec(any::<[Option<i64>; 6]>(), 1..20),
        gap in any::<i64>(),
        title in ".{0,200}",
    ) {
        let samples = times.iter().enumerate().map(|(index, times)| {
            let mut sample = sample(index as u32, 1.0);
            let [intended, start, writing, first, last, end] = times.map(|time| time.map(Nanos));
            sample.intended = intended.unwrap_or_default();
            (sample.start, sample.writing, sample.first_token) = (start, writing, first);
            (sample.last_token, sample.end) = (last, end);
            sample.token_times.extend(first);
            sample.gaps.record(Nanos(gap));
            sample
        });
        let samples: Vec<Sample> = samples.collect();
        let requests = requests(&samples);
        let all = [raster(0, &requests, &title), gaps(&requests), lengths(0, &requests)];
        all.into_iter().flatten().for_each(|svg| drop(elements(&svg)));
    }
}
