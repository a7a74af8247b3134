//! What tells plans apart.

use gate_model::{Arm, Plan, PlannedRequest};
use sha2::{Digest, Sha256};

/// SHA-256 of a section's whole plan in a binary form of fixed layout, in hexadecimal: equal plans, equal digests, on
/// every machine.
pub(crate) fn digest(plan: &Plan) -> String {
    let mut sha = Sha256::new();
    sha.update(b"gate plan 1\n");
    sha.update(plan.seed.to_le_bytes());
    sha.update(plan.section.to_le_bytes());
    sha.update(plan.first.to_le_bytes());
    for name in &plan.scenarios {
        sha.update((name.len() as u64).to_le_bytes());
        sha.update(name.as_bytes());
    }
    for counts in std::iter::once(&plan.looks).chain(&plan.by_scenario) {
        sha.update((counts.len() as u64).to_le_bytes());
        for count in counts {
            sha.update(count.to_le_bytes());
        }
    }
    let mut bytes = Vec::new();
    for requests in [&plan.warmup, &plan.requests] {
        sha.update((requests.len() as u64).to_le_bytes());
        // Many at a time: a million short updates would cost more than the sum itself.
        for some in requests.chunks(256) {
            bytes.clear();
            some.iter().for_each(|request| write(request, &mut bytes));
            sha.update(&bytes);
        }
    }
    sha.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write(request: &PlannedRequest, bytes: &mut Vec<u8>) {
    let counts = [request.index, request.pair.unwrap_or(0), request.ahead, request.input_tokens, request.output_tokens];
    for count in counts {
        bytes.extend_from_slice(&count.to_le_bytes());
    }
    for part in [request.scenario, request.turn, request.group] {
        bytes.extend_from_slice(&part.to_le_bytes());
    }
    let arm = match request.arm {
        Arm::Target => 0,
        Arm::Reference => 1,
    };
    bytes.extend_from_slice(&[u8::from(request.pair.is_some()), arm]);
    bytes.extend_from_slice(&request.at.0.to_le_bytes());
}
