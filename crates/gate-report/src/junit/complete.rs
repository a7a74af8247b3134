//! What the JUnit builder cannot write: skipped counts, lines, properties, times with three decimals.

use gate_model::{CheckVerdict, Status, Verdict};
use quick_xml::events::{BytesEnd, BytesStart, BytesText, Event};
use quick_xml::{Reader, Writer};

use crate::ReportError;
use crate::words::http_version;

/// What one suite gets beyond what the builder wrote.
pub(super) struct Completion {
    /// When the run started; a gate that never ran has none.
    timestamp: Option<String>,
    properties: Vec<(&'static str, String)>,
    skipped: usize,
    /// The spec's line of each testcase, in order.
    lines: Vec<Option<u32>>,
}

impl Completion {
    /// What the suite with these checks of the verdict gets.
    pub(super) fn of(verdict: &Verdict, checks: &[&CheckVerdict], skipped: usize) -> Self {
        let run = &verdict.run;
        let mut properties = vec![
            ("gate.version", verdict.gate.clone()),
            ("gate.run_id", run.run_id.clone()),
            ("gate.status", crate::words::status_word(verdict.status).to_lowercase()),
            ("gate.simulated", verdict.simulated.to_string()),
            ("gate.spec", verdict.spec_file.clone()),
            ("gate.target", run.target.clone()),
            ("gate.definitions", verdict.definitions.to_string()),
            ("gate.percentiles", run.percentiles.clone()),
        ];
        properties.extend(run.model.clone().map(|model| ("gate.model", model)));
        properties.extend(verdict.report_only.then(|| ("gate.report_only", "true".to_owned())));
        if run.imported_from.is_none() {
            properties.push(("gate.clock", run.health.clock.name().to_owned()));
        }
        if let Some(reached) = &run.reached {
            properties.push(("gate.http", http_version(reached.http).to_owned()));
            properties.push(("gate.addresses", reached.addresses.join(", ")));
            properties.extend(reached.proxy.clone().map(|proxy| ("gate.proxy", proxy)));
        }
        if let Some(reference) = &run.reference {
            properties.push(("gate.reference", reference.target.clone()));
            properties.extend(reference.model.clone().map(|model| ("gate.reference_model", model)));
        }
        properties.extend(run.commit.as_ref().map(|commit| ("gate.commit", commit.id.clone())));
        properties.extend(run.imported_from.clone().map(|format| ("gate.imported_from", format)));
        Self {
            timestamp: Some(super::one_line(&run.started)),
            properties: properties.into_iter().map(|(name, value)| (name, super::one_line(&value))).collect(),
            skipped,
            lines: checks.iter().map(|check| check.check.place().map(|place| place.line)).collect(),
        }
    }

    /// What the suite of a gate that never ran gets.
    pub(super) fn unresolved() -> Self {
        let properties = vec![
            ("gate.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("gate.status", crate::words::status_word(Status::CouldNotMeasure).to_lowercase()),
        ];
        Self { timestamp: None, properties, skipped: 0, lines: vec![None] }
    }
}

/// The report with every suite completed, in order, and indented for people.
pub(super) fn complete(built: &str, completions: &[Completion]) -> Result<String, ReportError> {
    let mut reader = Reader::from_str(built);
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    let mut suites = completions.iter();
    let mut lines = [].iter();
    loop {
        match reader.read_event()? {
            Event::Eof => break,
            Event::Start(tag) if tag.name().as_ref() == "testsuites" => {
                writer.write_event(Event::Start(tag.with_attributes([("name", "gate")])))?;
            }
            Event::Start(tag) if tag.name().as_ref() == "testsuite" => {
                let Some(suite) = suites.next() else { continue };
                lines = suite.lines.iter();
                writer.write_event(Event::Start(suite_tag(&tag, suite)?))?;
                write_properties(&mut writer, suite)?;
            }
            Event::Start(tag) if tag.name().as_ref() == "testcase" => {
                writer.write_event(Event::Start(case_tag(&tag, lines.next())?))?;
            }
            Event::Empty(tag) if tag.name().as_ref() == "testcase" => {
                writer.write_event(Event::Empty(case_tag(&tag, lines.next())?))?;
            }
            // As escaped text: a reader that mishandles CDATA reads it too.
            Event::CData(data) => writer.write_event(Event::Text(BytesText::new(&data)))?,
            event => writer.write_event(event)?,
        }
    }
    Ok(ascii(&String::from_utf8(writer.into_inner())?) + "\n")
}

/// The same XML in ASCII alone, with references for all else: some readers guess the encoding, and guess wrong.
/// Only text and attribute values hold other characters here, so a reference may stand for each.
fn ascii(xml: &str) -> String {
    xml.chars().fold(String::with_capacity(xml.len()), |mut text, symbol| {
        if symbol.is_ascii() {
            text.push(symbol);
        } else {
            text.push_str(&format!("&#x{:X};", u32::from(symbol)));
        }
        text
    })
}

/// The suite's tag: without the builder's placeholders, with the run's start and what was skipped.
fn suite_tag(tag: &BytesStart<'_>, suite: &Completion) -> Result<BytesStart<'static>, ReportError> {
    let mut completed = BytesStart::new("testsuite");
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(quick_xml::Error::from)?;
        match attribute.key.as_ref() {
            "package" | "hostname" | "timestamp" => {}
            "time" => completed.push_attribute(("time", seconds(&attribute.value).as_str())),
            _ => completed.push_attribute(attribute),
        }
    }
    completed.push_attribute(("skipped", suite.skipped.to_string().as_str()));
    if let Some(timestamp) = &suite.timestamp {
        completed.push_attribute(("timestamp", timestamp.as_str()));
    }
    Ok(completed)
}

/// The testcase's tag with its line.
fn case_tag(tag: &BytesStart<'_>, line: Option<&Option<u32>>) -> Result<BytesStart<'static>, ReportError> {
    let mut completed = BytesStart::new("testcase");
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(quick_xml::Error::from)?;
        match attribute.key.as_ref() {
            "time" => completed.push_attribute(("time", seconds(&attribute.value).as_str())),
            _ => completed.push_attribute(attribute),
        }
    }
    if let Some(Some(line)) = line {
        completed.push_attribute(("line", line.to_string().as_str()));
    }
    Ok(completed)
}

/// Seconds with three decimals: readers' schemas allow no more.
fn seconds(text: &str) -> String {
    format!("{:.3}", text.parse::<f64>().unwrap_or(0.0))
}

fn write_properties(writer: &mut Writer<Vec<u8>>, suite: &Completion) -> Result<(), ReportError> {
    writer.write_event(Event::Start(BytesStart::new("properties")))?;
    for (name, value) in &suite.properties {
        let property = BytesStart::new("property").with_attributes([("name", *name), ("value", value.as_str())]);
        writer.write_event(Event::Empty(property))?;
    }
    writer.write_event(Event::End(BytesEnd::new("properties")))?;
    Ok(())
}
