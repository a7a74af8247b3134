//! axe-core, where `GATE_AXE` names its script: what keeps people from reading the page.

use serde_json::Value;

use super::chromium::Chromium;

/// The script; `None` where nobody says where it is.
pub(super) fn script() -> Option<String> {
    let path = std::env::var_os("GATE_AXE").filter(|path| !path.is_empty())?;
    Some(std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// Fails with every serious or critical fault of the open page.
#[track_caller]
pub(super) fn expect_no_serious_fault(browser: &mut Chromium, script: &str, what: &str) {
    browser.eval(&format!("{script};0"));
    let found = browser.eval(
        "axe.run(document, {resultTypes: ['violations']}).then(({violations, passes}) => ({
            passes: passes.length,
            faults: violations.filter(({impact}) => impact === 'serious' || impact === 'critical').flatMap((fault) =>
                fault.nodes.map((node) => `${fault.id}: ${node.target} ${node.html.slice(0, 120)}: ${node.failureSummary}`))
        }))",
    );
    assert!(found["passes"].as_u64().unwrap() > 10, "{what}: axe looked at nothing: {found}");
    let faults: Vec<&str> = found["faults"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(faults.is_empty(), "{what}: {} faults\n{}", faults.len(), faults[..faults.len().min(12)].join("\n"));
}
