//! One question beside the load: a GET on a connection of its own, with its whole answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gate_model::{Arm, GateSpec, Http, Nanos, Redactor, Stamping};
use http::{HeaderValue, Request, header};
use http_body_util::BodyExt;
use tokio::time::timeout_at;

use crate::connection::{Connection, Unanswered};
use crate::proxy::{Forward, ProxyEnv};
use crate::receive::Receiver;
use crate::requests::Writer;
use crate::stamped::Stamps;
use crate::target::Target;
use crate::words::{Loss, clean};
use crate::{LoadError, Remote};

/// The most bytes of an answer.
pub(crate) const LONGEST: usize = 4 << 20;
/// The most characters of what a server calls itself.
const SERVER_NAME: usize = 200;

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// What the server calls itself, as it came.
    pub server: Option<String>,
    /// The body; what is no UTF-8 is replaced.
    pub text: String,
}

/// Asks the spec's target for a path, with its key and headers, and waits for the whole answer. Blocks the calling thread.
///
/// # Errors
/// [`LoadError`] where the target cannot be asked at all; the inner error says in words, which hold no secret, why there is
/// no answer.
pub fn get(
    spec: &GateSpec,
    remote: &Remote,
    proxies: &ProxyEnv,
    path: &str,
    wait: Duration,
    redactor: &Redactor,
) -> Result<Result<Answer, String>, LoadError> {
    let http = spec.load.http;
    let target = Target::new(&remote.base, remote.socket.as_deref(), &remote.trust, proxies, http)?;
    let request = Writer::new(spec, Arm::Target, &remote.base, target.forward())?.get(path)?.request()?;
    let question = Question::new(target, request, http, wait);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(LoadError::Runtime)?;
    let answer = tokio::task::LocalSet::new().block_on(&runtime, question.answer());
    Ok(match answer {
        Ok(answer) => {
            let server = answer.server.map(|name| crate::words::clean_to(SERVER_NAME, &name, redactor));
            Ok(Answer { server, text: redactor.redact(&answer.text).into_owned(), ..answer })
        }
        Err(error) => Err(clean(&error, redactor)),
    })
}

/// A question, and the way to whom it is for.
pub(crate) struct Question {
    target: Target,
    request: Request<Bytes>,
    receiver: Arc<Receiver>,
    /// How long it may take, connecting included.
    pub(crate) wait: Duration,
}

impl Question {
    pub(crate) fn new(target: Target, mut request: Request<Bytes>, http: Http, wait: Duration) -> Self {
        if http == Http::One {
            request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Self { target, request, receiver: Receiver::new(Stamping::User), wait }
    }

    /// The path, without the query, which may hold a token.
    pub(crate) fn path(&self) -> &str {
        self.request.uri().path()
    }

    pub(crate) fn forward(&self) -> Option<&Forward> {
        self.target.forward()
    }

    /// The answer, or why there is none, in words.
    pub(crate) async fn answer(&self) -> Result<Answer, String> {
        let deadline = Instant::now() + self.wait;
        let limit = Nanos::from(self.wait);
        let late = || format!("no whole answer to GET {} within {limit}", self.path());
        // The endpoint may have moved, as a pod does that starts anew.
        self.target.look_up_again();
        let stamps = Stamps::new(&self.receiver);
        let connected = self.target.connect(deadline, &stamps).await.map_err(|error| error.words(limit))?;
        let connection = Connection::new(connected, stamps).await.map_err(|error| error.to_string())?;
        timeout_at(deadline.into(), self.ask(connection)).await.map_err(|_| late())?
    }

    async fn ask(&self, mut connection: Connection) -> Result<Answer, String> {
        let sent = connection.begin();
        let response = match connection.send(self.request.clone(), &sent).await {
            Ok(response) => response,
            Err(Unanswered::Unsent) => return Err("the server closed the connection at once".to_owned()),
            Err(Unanswered::Failed(error) | Unanswered::Refused(error)) => {
                return Err(lost(connection.loss(&error), self.path()));
            }
        };
        let status = response.status().as_u16();
        let server = response.headers().get(header::SERVER);
        let server = server.map(|server| String::from_utf8_lossy(server.as_bytes()).into_owned());
        let mut body = response.into_body();
        let mut bytes = Vec::new();
        while let Some(frame) = connection.drive(body.frame()).await {
            let frame = frame.map_err(|error| lost(connection.loss(&error), self.path()))?;
            bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |bytes| bytes));
            if bytes.len() > LONGEST {
                return Err(format!("what GET {} answers is longer than {} MiB", self.path(), LONGEST >> 20));
            }
        }
        Ok(Answer { status, server, text: String::from_utf8_lossy(&bytes).into_owned() })
    }
}

/// How an exchange was lost, in words.
fn lost(loss: Loss, path: &str) -> String {
    match loss {
        Loss::Reset => format!("the server reset the connection of GET {path}"),
        Loss::Closed => format!("the server closed the connection before its answer to GET {path} was complete"),
        Loss::Garbled(words) => format!("the answer to GET {path} is {words}"),
        Loss::Encrypted => crate::client::ENCRYPTED.to_owned(),
        Loss::OtherVersion(spoken) => crate::words::other_version(spoken).to_owned(),
        Loss::Tls(words) => words,
        Loss::Ended(words) => format!("{words} before its answer to GET {path} was complete"),
    }
}
