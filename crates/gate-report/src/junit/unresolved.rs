//! Gates that never ran: their specs could not be resolved.

use junit_report::{Duration, OffsetDateTime, ReportBuilder, TestCaseBuilder, TestSuite};

use super::complete::{Completion, complete};
use super::{one_line, unique};
use crate::ReportError;
use crate::bounded::{NAME, TEXT};
use crate::escape::xml_text;
use crate::layout::clip;

/// Gates that could not be measured since their specs could not be resolved, such as for want of a credential, as JUnit
/// XML: one suite for each, with one testcase that is an `error` of type `could_not_measure`. Each is given by its name,
/// or its file where it has none, and why.
///
/// # Errors
/// As [`junit`](crate::junit()).
pub fn junit_unresolved(gates: &[(String, String)]) -> Result<String, ReportError> {
    let mut names = std::collections::HashSet::new();
    let mut report = ReportBuilder::new();
    for (gate, message) in gates {
        let classname = one_line(&format!("gate.{}", clip(gate, NAME)));
        let name = unique(&mut names, &classname, "the gate can be measured");
        let message = clip(message.trim(), TEXT);
        let sentence = one_line(&format!("could not measure: {message}"));
        let mut case = TestCaseBuilder::error(&name, Duration::ZERO, "could_not_measure", &sentence);
        case.set_trace(&xml_text(&sentence)).set_classname(&classname);
        report.add_testsuite(TestSuite {
            name: classname,
            package: String::new(),
            timestamp: OffsetDateTime::UNIX_EPOCH,
            hostname: String::new(),
            testcases: vec![case.build()],
            system_out: None,
            system_err: None,
        });
    }
    let mut built = Vec::new();
    report.build().write_xml(&mut built)?;
    let completions: Vec<Completion> = gates.iter().map(|_| Completion::unresolved()).collect();
    complete(&String::from_utf8(built)?, &completions)
}
