//! `gate sim`: the built-in simulated inference engine, as a server.

use gate_model::{Endpoint, EngineParams, ExitCode};
use gate_sim::Server;

use crate::cli::Sim;
use crate::console::Console;
use crate::failure::Failure;
use crate::{specs, stop};

pub(crate) fn sim(arguments: &Sim, console: &Console) -> Result<ExitCode, Failure> {
    let params = match &arguments.spec {
        None => EngineParams::default(),
        Some(path) => match specs::resolve_one(path, &arguments.overlays.list(), console)?.target.endpoint {
            Endpoint::Sim(params) => *params,
            Endpoint::Url(_) => {
                return Err(Failure::usage(format!("{} has no `target.sim` to serve", path.display()))
                    .hint("name a spec whose target is `sim`, or none for the default engine"));
            }
        },
    };
    let server = Server::start(arguments.listen, params).map_err(|error| Failure::usage(format!("{error}")))?;
    let base = format!("http://{}", server.address());
    console.people(&format!(
        "simulated engine at {base} (every dialect but custom, each at its own route)\n\
         test it with: gate check SPEC --target {base}\n\
         what it sent: {base}/truth\n"
    ));
    let handle = server.stop_handle();
    stop::on_signals(move || handle.stop())?;
    server.wait();
    Ok(ExitCode::Passed)
}
