//! One connection: its requests, one after another.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use gate_engine::script_at;
use gate_model::Nanos;
use serde_json::json;
use tokio::net::TcpStream;

use crate::ask::{Ask, MODEL};
use crate::dialect::{self, Dialect, Ollama, OpenaiChat};
use crate::http::{Connection, NoRequest, Refusal, Request};
use crate::metrics;
use crate::playback::{Next, Playback};
use crate::server::Engine;

/// Serves a connection until the client leaves, a fault ends it, or the engine dies.
pub(crate) async fn serve(mut stream: TcpStream, engine: Arc<Engine>) {
    // An event is one packet, at once. Where that cannot be had the answer comes later, which the client will see.
    let _ = stream.set_nodelay(true);
    let mut dead = engine.dead.subscribe();
    let died = tokio::select! {
        // First: nothing is written after death.
        biased;
        died = dead.wait_for(|dead| *dead) => died.is_ok(),
        _ = converse(&mut stream, &engine) => false,
    };
    if died {
        let _ = stream.set_zero_linger();
    }
}

/// Ends when the connection is to be closed, or with the error that shows the client gone.
async fn converse(stream: &mut TcpStream, engine: &Engine) -> io::Result<()> {
    let mut connection = Connection::new(stream);
    loop {
        let next = match connection.request().await {
            Err(NoRequest::Gone) => return Ok(()),
            Err(NoRequest::Refused(refusal)) => {
                connection.answer(refusal.status, &OpenaiChat.refusal(&refusal), "connection: close\r\n").await?;
                Next::Close
            }
            Ok(request) => {
                let next = answer(&mut connection, &request, engine).await?;
                // A HEAD is answered like any wrong method, with a body that its client does not expect.
                let last = !request.keep_alive || request.method == "HEAD";
                if next == Next::Serve && last { Next::Close } else { next }
            }
        };
        match next {
            Next::Serve => {}
            Next::Close => {
                connection.close().await;
                return Ok(());
            }
            Next::Reset => return connection.stream.set_zero_linger(),
        }
    }
}

/// What is served at a path.
enum Route {
    /// In this dialect, and of this model where the path names one.
    Generate(&'static dyn Dialect, Option<String>),
    Health,
    Metrics,
    Models,
    Tags,
    Truth,
}

impl Route {
    fn of(request: &Request) -> Option<Self> {
        match request.path.as_str() {
            "/health" => Some(Self::Health),
            "/metrics" => Some(Self::Metrics),
            "/v1/models" => Some(Self::Models),
            "/api/tags" => Some(Self::Tags),
            "/truth" => Some(Self::Truth),
            _ => dialect::at(request).map(|(dialect, model)| Self::Generate(dialect, model)),
        }
    }

    fn method(&self) -> &'static str {
        match self {
            Self::Generate(..) => "POST",
            _ => "GET",
        }
    }

    /// The dialect of errors.
    fn dialect(&self) -> &'static dyn Dialect {
        match self {
            Self::Generate(dialect, _) => *dialect,
            Self::Tags => &Ollama::Chat,
            _ => &OpenaiChat,
        }
    }
}

async fn answer(connection: &mut Connection<'_>, request: &Request, engine: &Engine) -> io::Result<Next> {
    let arrived = Instant::now();
    let (method, path) = (&request.method, &request.path);
    let Some(route) = Route::of(request) else {
        let refusal = Refusal::new(404, &format!("Invalid URL ({method} {path})"));
        return refuse(connection, &OpenaiChat, &refusal, "").await;
    };
    let (dialect, allowed) = (route.dialect(), route.method());
    if method != allowed {
        let message =
            format!("Not allowed to {method} on {path} (HINT: Perhaps you meant to make a {allowed} request)");
        return refuse(connection, dialect, &Refusal::new(405, &message), &format!("allow: {allowed}\r\n")).await;
    }
    let body = match route {
        Route::Truth => serde_json::to_value(engine.truth())?,
        _ if !engine.is_ready() => {
            return refuse(connection, dialect, &Refusal::new(503, "The engine is starting."), "").await;
        }
        Route::Metrics => {
            connection.answer_text(metrics::CONTENT_TYPE, &metrics::text(&engine.queue.gauges())).await?;
            return Ok(Next::Serve);
        }
        Route::Health => json!({"status": "ok"}),
        Route::Models => {
            let model = json!({"id": MODEL, "object": "model", "created": 0, "owned_by": "gate"});
            json!({"object": "list", "data": [model]})
        }
        Route::Tags => dialect::tags(),
        Route::Generate(dialect, model) => {
            let asked = dialect.ask(&request.body);
            return match asked.map(|ask| Ask { model: model.unwrap_or(ask.model.clone()), ..ask }) {
                Ok(ask) => generate(connection, dialect, &ask, request, arrived, engine).await,
                Err(refusal) => refuse(connection, dialect, &refusal, "").await,
            };
        }
    };
    connection.answer(200, &body, "").await?;
    Ok(Next::Serve)
}

async fn refuse(
    connection: &mut Connection<'_>,
    dialect: &dyn Dialect,
    refusal: &Refusal,
    more: &str,
) -> io::Result<Next> {
    let headers = dialect.refusal_headers(refusal) + more;
    connection.answer(refusal.status, &dialect.refusal(refusal), &headers).await?;
    Ok(Next::Serve)
}

async fn generate(
    connection: &mut Connection<'_>,
    dialect: &'static dyn Dialect,
    ask: &Ask,
    request: &Request,
    arrived: Instant,
    engine: &Engine,
) -> io::Result<Next> {
    let script_of =
        |number, since| (!engine.is_fatal(number)).then(|| script_at(&engine.params, number, ask.max_tokens, since));
    let (number, script) = engine.ledger.enter(dialect.api(), ask, arrived, script_of);
    let Some(script) = script else {
        engine.death.notify_one();
        // The server resets this connection like all others, once its port is closed.
        return std::future::pending().await;
    };
    let takes_slot = !script.fate.is_at_once();
    let prompt = || engine.queue.prompt(&request.body, ask.prompt_tokens);
    let place = takes_slot.then(|| engine.queue.arrive(number, prompt()));
    let buffer_bytes = engine.params.buffer_bytes as usize;
    let playback = Playback {
        connection,
        ledger: &engine.ledger,
        alarm: &engine.alarm,
        queue: &engine.queue,
        place,
        retry_after: engine.params.retry_after.unwrap_or(Nanos::from_secs(1)),
        dialect,
        ask,
        arrived,
        number,
        script,
        buffer_bytes,
    };
    let played = playback.play().await;
    if played.is_err() {
        engine.ledger.client_left(number);
    }
    played
}
