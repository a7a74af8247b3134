//! A person opens `report.html` in a browser: what they see, point at, press and take away.
//!
//! Needs Chromium (`GATE_CHROMIUM`, or one on the path), and axe-core for the accessibility (`GATE_AXE`: its
//! `axe.min.js`). Without them the tests say so and pass, unless `GATE_BROWSER=required`.

mod axe;
mod chromium;
mod reports;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use self::chromium::Chromium;
use self::reports::{HOSTILE, MANY, Reports};
use crate::harness::wait_until;

/// One thing that a person does with the reports.
type Step = fn(&mut Chromium, &Reports);

/// One test with one browser and reports that are made once: both are gone when it ends, however it does.
#[test]
fn a_person_opens_the_report() {
    let Some(executable) = chromium::executable() else { return go_without("Chromium (GATE_CHROMIUM)") };
    let steps: [(&str, Step); 14] = [
        ("a_page_asks_for_nothing_and_complains_of_nothing", a_page_asks_for_nothing_and_complains_of_nothing),
        ("a_page_is_no_wider_than_its_window", a_page_is_no_wider_than_its_window),
        ("the_theme_goes_from_the_systems_to_light_to_dark", the_theme_goes_from_the_systems_to_light_to_dark),
        ("a_point_tells_its_request", a_point_tells_its_request),
        (
            "a_point_that_is_chosen_is_chosen_everywhere_and_has_an_address",
            a_point_that_is_chosen_is_chosen_everywhere_and_has_an_address,
        ),
        ("requests_are_sorted_and_filtered", requests_are_sorted_and_filtered),
        ("what_is_filtered_is_exported", what_is_filtered_is_exported),
        ("hostile_words_are_only_words", hostile_words_are_only_words),
        ("a_plot_is_zoomed_by_drag_and_by_keys", a_plot_is_zoomed_by_drag_and_by_keys),
        ("the_keyboard_reaches_everything", the_keyboard_reaches_everything),
        ("a_page_of_many_requests_is_quick_and_whole", a_page_of_many_requests_is_quick_and_whole),
        ("paper_is_light_and_shows_what_is_folded", paper_is_light_and_shows_what_is_folded),
        ("nobody_is_kept_from_reading_it", nobody_is_kept_from_reading_it),
        ("pictures_are_taken_where_asked", pictures_are_taken_where_asked),
    ];
    let reports = Reports::make();
    let mut browser = Chromium::launch(&executable);
    let mut failed = Vec::new();
    for (name, step) in steps {
        let start = Instant::now();
        let ended = catch_unwind(AssertUnwindSafe(|| step(&mut browser, &reports)));
        eprintln!("{name}: {} in {:.1} s", if ended.is_ok() { "ok" } else { "FAILED" }, start.elapsed().as_secs_f64());
        failed.extend(ended.is_err().then_some(name));
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Says that a test is left out, and fails where it must not be.
fn go_without(what: &str) {
    assert!(std::env::var("GATE_BROWSER").as_deref() != Ok("required"), "{what} is required");
    eprintln!("left out: there is no {what}");
}

/// The numbers of the first gate that are embedded in the open page.
fn embedded(browser: &mut Chromium) -> Value {
    browser.eval("JSON.parse(document.getElementById('gate-data').textContent).gates[0]")
}

/// The values of a column of the embedded requests.
fn column<'a>(gate: &'a Value, name: &str) -> &'a Vec<Value> {
    gate["requests"][name].as_array().unwrap()
}

const TABLE: &str = "section.requests[data-gate='0']";

/// Sets the filter's text, as typing does, and gives the count that is said after it.
fn filter(browser: &mut Chromium, text: &str) -> String {
    browser.eval(&format!(
        "(() => {{ const input = document.querySelector(\"{TABLE} input[type=search]\"); input.value = {text:?};
          input.dispatchEvent(new Event('input', {{bubbles: true}})); }})()"
    ));
    browser.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
    said(browser)
}

fn said(browser: &mut Chromium) -> String {
    browser.eval(&format!("document.querySelector(\"{TABLE} .said\").textContent")).as_str().unwrap().to_owned()
}

/// The rows of the table that are in the document, as the embedded requests' places.
fn rows(browser: &mut Chromium) -> Vec<usize> {
    let rows = browser.eval(&format!(
        "[...document.querySelectorAll(\"{TABLE} tbody tr[data-row]\")].map((line) => Number(line.dataset.row))"
    ));
    serde_json::from_value(rows).unwrap()
}

/// The range that the plot of TTFT shows: of seconds (`view`), or of milliseconds (`values`).
fn range(browser: &mut Chromium, of: &str) -> (f64, f64) {
    let range = browser.eval(&format!("document.querySelector('.plot[data-plot=ttft]').dataset.{of}"));
    let (from, to) = range.as_str().unwrap().split_once(' ').unwrap();
    (from.parse().unwrap(), to.parse().unwrap())
}

fn a_page_asks_for_nothing_and_complains_of_nothing(browser: &mut Chromium, reports: &Reports) {
    for file in [reports.small("passed"), reports.small("violated"), reports.large()] {
        browser.open(&file, 1280);
        browser.eval("new Promise((done) => setTimeout(done, 300))");
        assert_eq!(browser.complaints(), [""; 0], "{}", file.display());
        assert_eq!(browser.requests(), [format!("file://{}", file.display())]);
        assert_eq!(browser.eval("document.querySelectorAll('.plot canvas').length >= 2"), json!(true));
    }
}

fn a_page_is_no_wider_than_its_window(browser: &mut Chromium, reports: &Reports) {
    for file in [reports.small("passed"), reports.small("violated"), reports.large()] {
        browser.open(&file, 1280);
        browser.eval("document.querySelectorAll('details').forEach((folded) => (folded.open = true))");
        for width in [1280, 390] {
            browser.resize(width);
            browser.wait_for(
                "[...document.querySelectorAll('.plot .uplot')].every((plot) =>
                plot.offsetWidth === plot.parentElement.clientWidth)",
            );
            let wide = browser.eval(
                "[...document.querySelectorAll('body *')].filter((one) =>
                   one.getBoundingClientRect().right > document.documentElement.clientWidth + 1
                   && !one.closest('.scroller, svg')).slice(0, 5).map((one) => one.outerHTML.slice(0, 150))",
            );
            let [scroll, client] = ["scrollWidth", "clientWidth"]
                .map(|name| browser.eval(&format!("document.documentElement.{name}")).as_u64().unwrap());
            assert!(scroll <= client, "{} at {width}: {scroll} > {client}: {wide:#}", file.display());
        }
    }
}

fn the_theme_goes_from_the_systems_to_light_to_dark(browser: &mut Chromium, reports: &Reports) {
    let colours = |browser: &mut Chromium| {
        browser.eval("[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor].join()")
    };
    browser.prefer("light");
    browser.open(&reports.small("passed"), 1280);
    let light = colours(browser);
    browser.prefer("dark");
    let dark = colours(browser);
    assert_ne!(light, dark, "the system's colours");
    browser.click("#theme");
    assert_eq!(colours(browser), light);
    browser.click("#theme");
    assert_eq!(colours(browser), dark);
    browser.prefer("light");
    assert_eq!(colours(browser), dark);
    browser.click("#theme");
    assert_eq!(colours(browser), light);
    // A plot is drawn anew: its canvas has no colour of the other theme.
    let ink = "(() => { const canvas = document.querySelector('.plot canvas');
        const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        let sum = 0; for (let at = 0; at < data.length; at += 4) sum += data[at + 3] ? data[at] : 0; return sum; })()";
    let before = browser.eval(ink);
    browser.click("#theme");
    browser.click("#theme");
    browser.wait_for(&format!("{ink} !== {before}"));
}

fn a_point_tells_its_request(browser: &mut Chromium, reports: &Reports) {
    browser.open(&reports.small("passed"), 1280);
    let gate = embedded(browser);
    let place = column(&gate, "ttft").iter().position(Value::is_number).unwrap();
    let [due, ttft] = ["due", "ttft"].map(|name| column(&gate, name)[place].as_f64().unwrap());
    let index = &column(&gate, "index")[place];

    let [left, top, width, height] = browser.place(".plot[data-plot=ttft] .u-over");
    let (from, to) = range(browser, "view");
    let (low, high) = range(browser, "values");
    browser.move_to((left + (due / 1e3 - from) / (to - from) * width, top + (high - ttft) / (high - low) * height));
    let about = browser.eval("document.getElementById('tip').dataset.about");
    assert_eq!(about, json!(format!("0:{index}")));
    let tip = browser.eval("document.getElementById('tip').innerText");
    let tip = tip.as_str().unwrap();
    let shown = match ttft {
        100.0.. => format!("{ttft:.0} ms"),
        10.0.. => format!("{ttft:.1} ms"),
        _ => format!("{ttft:.2} ms"),
    };
    assert!(tip.contains(&format!("Request {index}")) && tip.contains(&shown), "{shown} is not in {tip}");

    browser.key("Escape");
    assert_eq!(browser.eval("document.getElementById('tip').hidden"), json!(true));
}

fn a_point_that_is_chosen_is_chosen_everywhere_and_has_an_address(browser: &mut Chromium, reports: &Reports) {
    browser.open(&reports.small("violated"), 1280);
    browser.click(&format!("{TABLE} tbody tr[data-row='4'] button"));
    let gate = embedded(browser);
    let index = column(&gate, "index")[4].clone();
    assert_eq!(browser.eval("location.hash"), json!(format!("#request=0:{index}")));
    let marked = "document.querySelector('svg [data-r].chosen')?.dataset.r";
    assert_eq!(browser.eval(marked), json!(format!("0:{index}")), "the raster marks it");
    let detail = browser.eval(&format!("document.querySelector(\"{TABLE} .detail\").innerText"));
    assert!(detail.as_str().unwrap().contains(&format!("Request {index}")), "{detail}");

    let other = column(&gate, "index")[9].clone();
    browser.eval(&format!("location.hash = '#request=0:{other}'"));
    browser.wait_for(&format!("{marked} === '0:{other}'"));
    assert_eq!(browser.complaints(), [""; 0]);
}

fn requests_are_sorted_and_filtered(browser: &mut Chromium, reports: &Reports) {
    browser.open(&reports.small("passed"), 1280);
    let gate = embedded(browser);
    let ttft = column(&gate, "ttft");
    let total = ttft.len();
    assert_eq!(said(browser), format!("{total} of {total}"));

    browser.click(&format!("{TABLE} th[data-key=ttft] button"));
    let sorted: Vec<f64> = rows(browser).iter().filter_map(|row| ttft[*row].as_f64()).collect();
    assert!(sorted.len() > 10 && sorted.is_sorted(), "{sorted:?}");
    let sort = format!("document.querySelector(\"{TABLE} th[data-key=ttft]\").getAttribute('aria-sort')");
    assert_eq!(browser.eval(&sort), "ascending");
    browser.click(&format!("{TABLE} th[data-key=ttft] button"));
    assert_eq!(browser.eval(&sort), "descending");
    let sorted: Vec<f64> = rows(browser).iter().filter_map(|row| ttft[*row].as_f64()).collect();
    assert!(sorted.iter().rev().is_sorted(), "{sorted:?}");

    // A limit between two that differ, so that no rounding of its text can move it past either.
    let limit = sorted
        .windows(2)
        .map(|pair| (pair[0] + pair[1]) / 2.0)
        .find(|middle| sorted.iter().all(|value| (value - middle).abs() > 1e-3));
    let limit = limit.expect("two answers a microsecond apart");
    let slower = sorted.iter().filter(|value| **value > limit).count();
    assert_eq!(filter(browser, &format!("ttft>{limit}")), format!("{slower} of {total}"));
    assert_eq!(filter(browser, &format!("ttft>{:.9}s", limit / 1e3)), format!("{slower} of {total}"));

    let outcomes = gate["outcomes"].as_array().unwrap();
    let failed = outcomes.iter().position(|name| name == "http_5xx").expect("the engine's faults");
    let is_failed = |value: &Value| value.as_u64() == Some(failed as u64);
    let failures = column(&gate, "outcome").iter().filter(|value| is_failed(value)).count();
    assert!(failures > 0 && failures < total);
    assert_eq!(filter(browser, "outcome:http_5xx"), format!("{failures} of {total}"));
    assert!(rows(browser).iter().all(|row| is_failed(&column(&gate, "outcome")[*row])));
    assert_eq!(filter(browser, "-outcome:http_5xx"), format!("{} of {total}", total - failures));
    assert_eq!(filter(browser, "outcome:http_5xx ttft>0"), format!("0 of {total}"));
    assert!(filter(browser, "speed>3").contains("no column is named speed"));
    assert!(filter(browser, "ttft>fast").contains("wants a number"));
    assert_eq!(filter(browser, ""), format!("{total} of {total}"));
    browser.eval(&format!(
        "(() => {{ const one = document.querySelector(\"{TABLE} select[data-key=outcome]\"); one.value = '{failed}';
          one.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"
    ));
    assert_eq!(said(browser), format!("{failures} of {total}"));
}

/// The file that the button of the table gives.
fn exported(browser: &mut Chromium, gate: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    browser.call("Page.setDownloadBehavior", json!({"behavior": "allow", "downloadPath": folder.path()}));
    browser.click(&format!("{TABLE} button.export"));
    let file = folder.path().join(format!("{gate}-requests.csv"));
    wait_until("the export", || file.is_file());
    std::fs::read_to_string(file).unwrap()
}

fn what_is_filtered_is_exported(browser: &mut Chromium, reports: &Reports) {
    browser.open(&reports.small("passed"), 1280);
    let gate = embedded(browser);
    filter(browser, "outcome:ok");
    let text = exported(browser, "passed");
    assert!(text.ends_with("\r\n"));
    let mut lines = text.split_terminator("\r\n").map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let at = |name: &str| head.iter().position(|one| *one == name).unwrap_or_else(|| panic!("no {name} in {head:?}"));
    let exported: Vec<(u64, f64)> =
        lines.map(|line| (line[at("index")].parse().unwrap(), line[at("ttft_ms")].parse().unwrap())).collect();
    let embedded: Vec<(u64, f64)> = column(&gate, "index")
        .iter()
        .zip(column(&gate, "ttft"))
        .filter_map(|(index, ttft)| Some((index.as_u64().unwrap(), ttft.as_f64()?)))
        .collect();
    assert_eq!(exported, embedded);
}

fn hostile_words_are_only_words(browser: &mut Chromium, reports: &Reports) {
    browser.open(&reports.small("hostile"), 1280);
    let failures = filter(browser, "onerror");
    assert!(!failures.starts_with("0 of "), "{failures}");
    browser.click(&format!("{TABLE} tbody tr[data-row] button"));
    let detail = browser.eval(&format!("document.querySelector(\"{TABLE} .detail\").innerText"));
    assert!(detail.as_str().unwrap().contains(HOSTILE), "{detail}");
    let text = exported(browser, "hostile");
    let quoted = format!("{}\"\r\n", HOSTILE.replace('"', "\"\""));
    assert!(text.contains(&quoted), "{quoted} is not in {text}");
    assert_eq!(browser.eval("document.images.length"), json!(0));
    assert_eq!(browser.complaints(), [""; 0]);
}

fn a_plot_is_zoomed_by_drag_and_by_keys(browser: &mut Chromium, reports: &Reports) {
    browser.open(&reports.small("passed"), 1280);
    let whole = range(browser, "view");
    let [left, top, width, height] = browser.place(".plot[data-plot=ttft] .u-over");
    let y = top + height / 2.0;
    browser.drag((left + width * 0.25, y), (left + width * 0.5, y));
    let zoomed = range(browser, "view");
    let span = whole.1 - whole.0;
    assert!((zoomed.0 - (whole.0 + span * 0.25)).abs() < span * 0.01, "{whole:?} {zoomed:?}");
    assert!((zoomed.1 - (whole.0 + span * 0.5)).abs() < span * 0.01, "{whole:?} {zoomed:?}");
    let views = "[...new Set([...document.querySelectorAll('.plot')].map((plot) => plot.dataset.view))].length";
    assert_eq!(browser.eval(views), json!(1), "the plots of a gate show one range");
    browser.click(".plot[data-plot=ttft] .reset");
    assert_eq!(range(browser, "view"), whole);

    browser.eval("document.querySelector('.plot[data-plot=ttft] .stage').focus()");
    browser.key("+");
    let closer = range(browser, "view");
    assert!(closer.1 - closer.0 < span * 0.51, "{closer:?}");
    browser.key("ArrowRight");
    assert!(range(browser, "view").0 > closer.0);
    browser.key("Escape");
    assert_eq!(range(browser, "view"), whole);
}

fn the_keyboard_reaches_everything(browser: &mut Chromium, reports: &Reports) {
    browser.open(&reports.small("violated"), 1280);
    let focused = |browser: &mut Chromium, selector: &str| {
        browser.eval(&format!("document.activeElement.matches({selector:?})")) == json!(true)
    };
    let tab_to = |browser: &mut Chromium, selector: &str| {
        let is_reached = (0..300).any(|_| {
            browser.key("Tab");
            focused(browser, selector)
        });
        assert!(is_reached, "Tab does not reach {selector}");
    };
    tab_to(browser, "svg [data-r]");
    browser.wait_for("!document.getElementById('tip').hidden");
    let about = browser.eval("document.getElementById('tip').dataset.about");
    assert_eq!(about, browser.eval("document.activeElement.dataset.r"));
    browser.key("Escape");
    assert_eq!(browser.eval("document.getElementById('tip').hidden"), json!(true));
    browser.key("ArrowRight");
    assert_ne!(browser.eval("document.activeElement.dataset.r"), about);

    tab_to(browser, &format!("{TABLE} th[data-key=e2e] button"));
    browser.key("Enter");
    let sort = format!("document.querySelector(\"{TABLE} th[data-key=e2e]\").getAttribute('aria-sort')");
    assert_eq!(browser.eval(&sort), "ascending");
    tab_to(browser, &format!("{TABLE} tbody button"));
    browser.key("ArrowDown");
    browser.key("Enter");
    let second = rows(browser)[1];
    let gate = embedded(browser);
    let hash = format!("#request=0:{}", column(&gate, "index")[second]);
    assert_eq!(browser.eval("location.hash"), json!(hash));
}

fn a_page_of_many_requests_is_quick_and_whole(browser: &mut Chromium, reports: &Reports) {
    let file = reports.large();
    browser.open(&file, 1280);
    let paint = browser.eval("performance.getEntriesByName('first-contentful-paint')[0].startTime");
    let ready = browser.eval("performance.now()");
    let paint = paint.as_f64().unwrap();
    let size = std::fs::metadata(&file).unwrap().len();
    eprintln!("of {MANY} requests, {size} bytes: first paint after {paint:.0} ms, ready within {ready:.0} ms");
    assert!(paint < 15_000.0, "first paint after {paint} ms");

    let said = said(browser);
    let kept = browser.eval("JSON.parse(document.getElementById('gate-data').textContent).gates[0].kept");
    let kept = kept.as_u64().unwrap();
    assert!(said.starts_with(&format!("{kept} of {kept}")), "{said}");
    assert!(rows(browser).len() < 100, "only the rows that are seen are in the document");
    browser.eval(&format!("document.querySelector(\"{TABLE} .scroller\").scrollTop = 1e9"));
    browser.wait_for(&format!(
        "[...document.querySelectorAll(\"{TABLE} tr[data-row]\")].some((line) => line.ariaRowIndex === '{}')",
        kept + 1
    ));
    let failures = filter(browser, "outcome:http_5xx");
    assert!(failures.starts_with("100 of "), "{failures}");

    // A slice of the plot tells its numbers.
    browser.eval("document.getElementById('tip').hidden = true");
    let middle = browser.middle(".plot[data-plot=ttft] .u-over");
    browser.move_to(middle);
    let tip = browser.eval("document.getElementById('tip').innerText");
    assert!(["p50", "p95", "max"].iter().all(|name| tip.as_str().unwrap().contains(name)), "{tip}");
}

fn paper_is_light_and_shows_what_is_folded(browser: &mut Chromium, reports: &Reports) {
    browser.prefer("dark");
    browser.open(&reports.small("passed"), 1280);
    let folded = "document.querySelectorAll('details:not([open])').length";
    let colour = "getComputedStyle(document.body).backgroundColor";
    let on_screen = (browser.eval(folded), browser.eval(colour));
    browser.eval(&format!("addEventListener('beforeprint', () => (window.printed = [{folded}, {colour}]))"));
    let paper = browser.call("Page.printToPDF", json!({"printBackground": true}));
    assert!(paper["data"].as_str().unwrap().len() > 10_000, "a page of paper");
    let printed = browser.eval("window.printed");
    assert_eq!(printed[0], json!(0), "everything is unfolded");
    assert_ne!(printed[1], on_screen.1, "paper is not dark");
    assert_eq!((browser.eval(folded), browser.eval(colour)), on_screen, "the screen is as it was");
    browser.prefer("light");
}

fn nobody_is_kept_from_reading_it(browser: &mut Chromium, reports: &Reports) {
    let Some(script) = axe::script() else { return go_without("axe-core (GATE_AXE)") };
    for (name, scheme) in [("passed", "light"), ("violated", "light"), ("violated", "dark")] {
        browser.prefer(scheme);
        browser.open(&reports.small(name), 1280);
        browser.eval("document.querySelectorAll('details').forEach((folded) => (folded.open = true))");
        browser.click(&format!("{TABLE} tbody tr[data-row='4'] button"));
        axe::expect_no_serious_fault(browser, &script, &format!("{name}, {scheme}"));
    }
    browser.prefer("light");
}

/// For those who want to look: `GATE_PICTURES=folder` keeps a picture of each page.
fn pictures_are_taken_where_asked(browser: &mut Chromium, reports: &Reports) {
    let Some(folder) = std::env::var_os("GATE_PICTURES") else { return };
    let pages =
        [("passed", reports.small("passed")), ("violated", reports.small("violated")), ("many", reports.large())];
    for (name, file) in pages {
        for (scheme, width) in [("light", 1280), ("dark", 1280), ("light", 390)] {
            browser.prefer(scheme);
            browser.open(&file, width);
            browser.picture(&Path::new(&folder).join(format!("{name}-{scheme}-{width}.png")));
        }
    }
}
