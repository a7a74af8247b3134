//! Waiting until the target is ready.

use std::time::{Duration, Instant};

use gate_model::{Nanos, Ready, ReadyPath};
use http::{Response, StatusCode, header};
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::LoadError;
use crate::client::{Client, ENCRYPTED, unanswered};
use crate::clock::later;
use crate::connection::{Connection, Unanswered};
use crate::exchange::error_body;
use crate::requests::Draft;
use crate::target::ConnectError;
use crate::tls::TlsFault;
use crate::words::{Loss, clean_to, other_version};

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(250);
/// How long a health or models path, or the body of a refusal, may take.
const GET_WAIT: Duration = Duration::from_secs(2);
/// The most characters of what a server calls itself.
const SERVER_NAME: usize = 200;

/// A way to ask whether the target is ready.
struct Question {
    /// For messages.
    name: String,
    kind: Kind,
    draft: Draft,
    /// At most.
    wait: Duration,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A path that says how the server is.
    Path,
    /// A request as measured ones are.
    Request,
}

/// What a question brought.
enum Reply {
    /// It is ready.
    Ready,
    /// Not here: ask elsewhere.
    Elsewhere(String),
    /// Not yet.
    NotYet(String),
    /// Never: waiting changes nothing.
    Never(String),
}

/// The questions, in the order they are asked.
fn questions(ready: &Ready, client: &Client) -> Result<Vec<Question>, LoadError> {
    let writer = &client.terms.writer;
    let get = |path: &str| {
        Ok::<_, LoadError>(Question {
            name: format!("GET {path}"),
            kind: Kind::Path,
            draft: writer.get(path)?,
            wait: GET_WAIT,
        })
    };
    Ok(match &ready.path {
        ReadyPath::Path(path) => vec![get(path)?],
        ReadyPath::Auto => {
            let draft = writer.hello()?;
            let name = format!("POST {}", draft.path());
            let wait = ready.within.to_duration().min(client.terms.timeouts.total.to_duration());
            vec![get("/health")?, get(&writer.models_path())?, Question { name, kind: Kind::Request, draft, wait }]
        }
    })
}

/// Asks until the target is ready. `waiting` is told what was last seen.
///
/// The inner error says, in words, what was last seen and what to do.
pub(crate) async fn until_ready(
    ready: &Ready,
    client: &Client,
    mut waiting: impl AsyncFnMut(Nanos, &str),
) -> Result<Result<(), String>, LoadError> {
    let start = Instant::now();
    let deadline = later(start, ready.within);
    let mut questions = questions(ready, client)?.into_iter().peekable();
    let Some(mut question) = questions.next() else { return Ok(Ok(())) };
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).max(PAUSE);
        client.terms.target.look_up_again();
        let last = match ask(client, &question, left).await {
            Reply::Ready => return Ok(Ok(())),
            Reply::Never(words) => return Ok(Err(words)),
            Reply::NotYet(words) => words,
            Reply::Elsewhere(words) => match questions.next() {
                Some(next) => {
                    question = next;
                    continue;
                }
                // A request's own route that is not there: warm-up says so, with what the server says of it.
                None if ready.path == ReadyPath::Auto => return Ok(Ok(())),
                None => format!("{words}: check `target.ready.path`"),
            },
        };
        waiting(start.elapsed().into(), &last).await;
        if Instant::now() + PAUSE >= deadline {
            let within = ready.within;
            let hint = "start the server first, or raise `target.ready.within`";
            let last = last.trim_end_matches('?');
            return Ok(Err(format!("not ready within {within}, last seen: {last}; {hint}")));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn ask(client: &Client, question: &Question, left: Duration) -> Reply {
    let name = &question.name;
    let limit = client.terms.timeouts.connect.to_duration().min(left);
    let mut connection = match client.connect(Instant::now() + limit).await {
        Ok((connection, _)) => connection,
        // A port that is forwarded to a container accepts before anything listens behind it.
        Err(ConnectError::NotYet(words) | ConnectError::Tls(TlsFault::Lost(words))) => return Reply::NotYet(words),
        Err(error @ (ConnectError::Late(_) | ConnectError::Failed(_))) => {
            let place = client.terms.target.named_by();
            return Reply::Never(format!("{}; check `{place}`", error.words(limit.into())));
        }
        Err(error) => return Reply::Never(error.words(limit.into())),
    };
    let wait = question.wait.min(left);
    let request = match question.draft.request() {
        Ok(request) => request,
        Err(error) => return Reply::Never(error.to_string()),
    };
    let sent = connection.begin();
    match timeout(wait, connection.send(request, &sent)).await {
        Ok(Ok(response)) => {
            let server = response.headers().get(header::SERVER);
            let server = server.map(|server| {
                clean_to(SERVER_NAME, &String::from_utf8_lossy(server.as_bytes()), &client.terms.redactor)
            });
            client.terms.target.answered(connection.http(), server);
            let status = response.status();
            if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED
                && let Some(forward) = client.terms.target.forward()
            {
                return Reply::Never(forward.proxy.unauthorised());
            }
            if question.kind == Kind::Request && status == StatusCode::BAD_REQUEST {
                learn_field(client, &mut connection, response, wait.min(GET_WAIT)).await;
            }
            reply(status, name)
        }
        // It spoke before it was asked.
        Ok(Err(Unanswered::Unsent)) if connection.is_other_version() => {
            Reply::Never(other_version(connection.http()).to_owned())
        }
        Ok(Err(Unanswered::Unsent)) => Reply::NotYet("the server closed the connection at once".to_owned()),
        Ok(Err(Unanswered::Failed(error) | Unanswered::Refused(error))) => match connection.loss(&error) {
            Loss::Encrypted => Reply::Never(ENCRYPTED.to_owned()),
            Loss::OtherVersion(spoken) => Reply::Never(other_version(spoken).to_owned()),
            Loss::Tls(words) => Reply::Never(words),
            // It answers, if in a strange way: what it says then is the run's to tell.
            Loss::Garbled(_) => {
                client.terms.target.answered(connection.http(), None);
                Reply::Ready
            }
            // The port of a container again.
            loss => Reply::NotYet(unanswered(loss).message.unwrap_or_default()),
        },
        Err(_) => Reply::NotYet(format!("no answer to {name} within {}", Nanos::from(wait))),
    }
}

/// Learns from a refusal whether the server wants another field for the length of answers.
async fn learn_field(client: &Client, connection: &mut Connection, response: Response<Incoming>, wait: Duration) {
    let status = response.status().as_u16();
    let (body, _) = error_body(connection, response.into_body(), Instant::now() + wait).await;
    let writer = &client.terms.writer;
    if let Some(field) = writer.dialect().wants_field(status, &body) {
        writer.switch_to(field);
    }
}

fn reply(status: StatusCode, name: &str) -> Reply {
    let words = || {
        let reason = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
        format!("{name} answered {}{reason}", status.as_u16())
    };
    match status.as_u16() {
        404 | 405 => Reply::Elsewhere(words()),
        502..=504 => Reply::NotYet(words()),
        _ => Reply::Ready,
    }
}
