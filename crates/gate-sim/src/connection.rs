//! One connection: its requests, one after another.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use gate_engine::script;
use serde_json::json;
use tokio::net::TcpStream;

use crate::chat::ChatRequest;
use crate::http::{Connection, NoRequest, Refusal, Request};
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
                connection.answer(refusal.status, &refusal.body(), "connection: close\r\n").await?;
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

async fn answer(connection: &mut Connection<'_>, request: &Request, engine: &Engine) -> io::Result<Next> {
    let arrived = Instant::now();
    let allowed = match request.path.as_str() {
        "/v1/chat/completions" => "POST",
        "/health" | "/v1/models" | "/truth" => "GET",
        path => {
            return refuse(connection, &Refusal::new(404, &format!("Invalid URL ({} {path})", request.method))).await;
        }
    };
    if request.method != allowed {
        let message = format!(
            "Not allowed to {} on {} (HINT: Perhaps you meant to make a {allowed} request)",
            request.method, request.path
        );
        let refusal = Refusal::new(405, &message);
        connection.answer(405, &refusal.body(), &format!("allow: {allowed}\r\n")).await?;
        return Ok(Next::Serve);
    }
    let body = match request.path.as_str() {
        "/truth" => serde_json::to_value(engine.ledger.truth())?,
        _ if !engine.is_ready() => return refuse(connection, &Refusal::new(503, "The engine is starting.")).await,
        "/health" => json!({"status": "ok"}),
        "/v1/models" => {
            let model = json!({"id": "gate-sim", "object": "model", "created": 0, "owned_by": "gate"});
            json!({"object": "list", "data": [model]})
        }
        _ => {
            return match ChatRequest::parse(&request.body) {
                Ok(chat) => generate(connection, &chat, arrived, engine).await,
                Err(refusal) => refuse(connection, &refusal).await,
            };
        }
    };
    connection.answer(200, &body, "").await?;
    Ok(Next::Serve)
}

async fn refuse(connection: &mut Connection<'_>, refusal: &Refusal) -> io::Result<Next> {
    connection.answer(refusal.status, &refusal.body(), "").await?;
    Ok(Next::Serve)
}

async fn generate(
    connection: &mut Connection<'_>,
    chat: &ChatRequest,
    arrived: Instant,
    engine: &Engine,
) -> io::Result<Next> {
    let script_of = |number| (!engine.is_fatal(number)).then(|| script(&engine.params, number, chat.max_tokens));
    let (number, script) = engine.ledger.enter(chat, arrived, script_of);
    let Some(script) = script else {
        engine.death.notify_one();
        // The server resets this connection like all others, once its port is closed.
        return std::future::pending().await;
    };
    let playback = Playback { connection, ledger: &engine.ledger, chat, arrived, number, script };
    let played = playback.play().await;
    if played.is_err() {
        engine.ledger.client_left(number);
    }
    played
}
