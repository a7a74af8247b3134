//! `gate schema`: the JSON Schema of gate specs.

use gate_model::ExitCode;

use crate::console::Console;
use crate::failure::Failure;

pub(crate) fn schema(console: &Console) -> Result<ExitCode, Failure> {
    let text = serde_json::to_string_pretty(&gate_spec::json_schema())
        .map_err(|error| Failure::internal(format!("cannot write the schema: {error}")))?;
    console.data(&(text + "\n"))?;
    Ok(ExitCode::Passed)
}
