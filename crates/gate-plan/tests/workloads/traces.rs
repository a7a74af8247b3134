use gate_model::{Iterations, Nanos, Pattern};
use gate_plan::{Files, Trace};

use crate::support::{error, plan_of, spec};

fn rows(text: &str) -> Vec<(i64, u32, u32)> {
    let trace = Trace::parse(text).unwrap();
    trace.rows().iter().map(|row| (row.at.0, row.input_tokens, row.output_tokens)).collect()
}

#[test]
fn traces_of_every_kind_are_read() {
    let azure = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n\
        2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:04.0319600,3180,8\r\n";
    assert_eq!(rows(azure), [(0, 4808, 10), (52_000_000, 3180, 8)]);
    let later = "TIMESTAMP,ContextTokens,GeneratedTokens\n\
        2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10T02:00:00.019930+02:00,2399,0\n";
    assert_eq!(rows(later), [(0, 2162, 5), (10_000_000, 2399, 1)]);
    let vidur = ",arrived_at,num_prefill_tokens,num_decode_tokens\n0,1.5,100,20\n1,1.25,7,3\n";
    assert_eq!(rows(vidur), [(0, 7, 3), (250_000_000, 100, 20)]);
    let arrival = "num_decode_tokens,arrival_timestamp,num_prefill_tokens\n5, 10, 50\n";
    assert_eq!(rows(arrival), [(0, 50, 5)]);
    assert_eq!(rows("\u{feff}timestamp,input,output\n0,1,2\n.5,3,4\n"), [(0, 1, 2), (500_000_000, 3, 4)]);
    let mooncake = "{\"timestamp\": 27482, \"input_length\": 6955, \"output_length\": 52, \"hash_ids\": [46, 47]}\n\n\
        {\"timestamp\": 30535, \"input_length\": 6472, \"output_length\": 26}\n";
    assert_eq!(rows(mooncake), [(0, 6955, 52), (3_053_000_000, 6472, 26)]);
    let trace = Trace::parse(mooncake).unwrap();
    assert_eq!((trace.duration(), trace.rate().unwrap().0), (Nanos(3_053_000_000), 1.0 / 3.053));
}

#[test]
fn a_wrong_trace_is_told_by_its_line() {
    for (text, words) in [
        ("", "the trace holds no request"),
        ("timestamp,input,output\n", "the trace holds no request"),
        (
            "time,prompt,output\n1,2,3\n",
            "the trace's first line has no column for the input length: call it `input`, `input_tokens`, \
             `input_length`, `contexttokens`, `num_prefill_tokens`; found were `time`, `prompt`, `output`",
        ),
        ("timestamp,input,output\n1,2,3\n2,x,3\n", "line 3 of the trace: `input` is `x`, and must be a whole number"),
        (
            "timestamp,input,output\n1,0,3\n",
            "line 2 of the trace: `input` is `0`, and must be a whole number of tokens",
        ),
        (
            "timestamp,input,output\n1,1000000000000,3\n",
            "line 2 of the trace: `input` is `1000000000000`, and must be a whole number of tokens, from 1 to 10,000,000",
        ),
        (
            "{\"timestamp\": 1, \"input_length\": 2, \"output_length\": 10000001}",
            "line 1 of the trace: `output_length` is 10000001, and must be a whole number of tokens, from 0 to 10,000,000",
        ),
        ("timestamp,input,output\n1,2,-3\n", "line 2 of the trace: `output` is `-3`, and must be a whole number"),
        ("timestamp,input,output\nsoon,2,3\n", "line 2 of the trace: `timestamp` is `soon`, and must be a number of"),
        ("timestamp,input,output\nNaN,2,3\n", "line 2 of the trace: `timestamp` is `NaN`"),
        ("timestamp,input,output\n1,2\n", "line 2 of the trace is not a line of the columns"),
        ("{\"timestamp\": 1, \"input_length\": 2}", "line 1 of the trace: `output_length` is missing"),
        (
            "{\"timestamp\": 1, \"input_length\": 2, \"output_length\": 3}\n[]",
            "line 2 of the trace is not a JSON object",
        ),
    ] {
        let found = Trace::parse(text).unwrap_err().to_string();
        assert!(found.starts_with(words), "{text}: {found}");
        assert!(found.chars().count() < 300, "{found}");
    }
}

#[test]
fn a_trace_is_sent_as_it_was() {
    let text: String = (0..40).map(|row| format!("{},{},{}\n", f64::from(row) * 0.25, 100 + row, 10 + row)).collect();
    let trace = Trace::parse(&format!("timestamp,input,output\n{text}")).unwrap();
    let files = Files { trace: Some(trace), ..Files::default() };
    let mut spec = spec(3);
    spec.load.pattern = Pattern::Trace("trace.csv".to_owned());

    spec.load.iterations = Iterations::For(Nanos::from_secs(3600));
    let whole = plan_of(&spec, &files);
    assert_eq!((whole.requests.len(), whole.looks.as_slice()), (40, &[40][..]));
    for (row, request) in (0..).zip(&whole.requests) {
        let expected = (Nanos::from_millis(250 * i64::from(row)), 100 + row, 10 + row);
        assert_eq!((request.at, request.input_tokens, request.output_tokens), expected);
    }
    spec.load.iterations = Iterations::For(Nanos::from_secs(5));
    assert_eq!(plan_of(&spec, &files).requests, whole.requests[..20]);
    spec.load.iterations = Iterations::Fixed(7);
    assert_eq!(plan_of(&spec, &files).requests, whole.requests[..7]);
    spec.load.iterations = Iterations::Fixed(41);
    assert_eq!(
        error(&spec, &files),
        "`load.trace` ends after 40 rows, and `load.iterations` asks for 41 requests: lower it, or leave it out to \
         send the whole trace"
    );
    let one = Trace::parse("timestamp,input,output\n0,2,3\n").unwrap();
    let files = Files { trace: Some(one), ..Files::default() };
    spec.load.iterations = Iterations::Fixed(2);
    assert!(
        error(&spec, &files).starts_with("`load.trace` ends after 1 row, and `load.iterations` asks for 2 requests")
    );
}

#[test]
fn no_row_is_dropped_because_it_is_late() {
    // A day is the longest plan; the rows are not in the order of their times.
    let trace =
        |last: &str| Trace::parse(&format!("timestamp,input,output\n100,2,3\n{last},2,3\n\n200,2,3\n")).unwrap();
    let mut spec = spec(3);
    spec.load.pattern = Pattern::Trace("trace.csv".to_owned());
    let files = |last: &str| Files { trace: Some(trace(last)), ..Files::default() };
    let day = Iterations::For(Nanos::from_secs(86_400));
    let words = |line: u32, after: &str| {
        format!(
            "line {line} of the trace is due {after} after its first request, and a plan lasts 24 h at most: give \
             `load.iterations` to send its first rows alone, or take out what comes later"
        )
    };
    for iterations in [day, Iterations::For(Nanos::from_secs(90_000)), Iterations::Fixed(3)] {
        spec.load.iterations = iterations;
        assert_eq!(plan_of(&spec, &files("86500")).requests.len(), 3, "just at the limit");
        let late = Nanos::from_secs(86_401).to_string();
        assert_eq!(error(&spec, &files("86501")), words(3, &late));
        assert!(error(&spec, &files("1e12")).starts_with("line 3 of the trace is due "));
    }
    // What is not asked for may be as late as it likes.
    for iterations in [Iterations::For(Nanos::from_secs(82_800)), Iterations::Fixed(2)] {
        spec.load.iterations = iterations;
        assert_eq!(plan_of(&spec, &files("1e12")).requests.len(), 2);
    }
}
