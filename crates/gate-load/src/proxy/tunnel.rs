//! A tunnel through a proxy, by `CONNECT`. hyper-util has one too, but says nothing of a refusal other than 407.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::Proxy;
use crate::connection::HEAD;
use crate::socket::Socket;
use crate::target::ConnectError;
use crate::words::Loss;

/// Has a proxy connect to `host:port`. What is written to the socket afterwards goes there.
pub(crate) async fn tunnel(socket: Socket, proxy: &Proxy, authority: &str) -> Result<Socket, ConnectError> {
    let failed = |error: &hyper::Error| ConnectError::Failed(loss(proxy, Loss::of(error, None)));
    let request = connect(proxy, authority).map_err(|error| ConnectError::Failed(error.to_string()))?;
    let (mut sender, driver) = http1::Builder::new()
        .max_buf_size(HEAD)
        .handshake(TokioIo::new(socket))
        .await
        .map_err(|error| failed(&error))?;
    let mut answer = pin!(sender.send_request(request));
    let mut driver = pin!(driver.without_shutdown());
    let mut over = None;
    let answer = poll_fn(|cx| {
        if over.is_none()
            && let Poll::Ready(end) = driver.as_mut().poll(cx)
        {
            over = Some(end);
        }
        answer.as_mut().poll(cx)
    });
    let status = answer.await.map_err(|error| failed(&error))?.status();
    if !status.is_success() {
        return Err(refusal(proxy, authority, status));
    }
    let parts = match over {
        Some(end) => end,
        None => driver.await,
    }
    .map_err(|error| failed(&error))?;
    if !parts.read_buf.is_empty() {
        let words = format!("the proxy at {} sends something of its own into the tunnel", proxy.url);
        return Err(ConnectError::Failed(words));
    }
    Ok(parts.io.into_inner())
}

fn connect(proxy: &Proxy, authority: &str) -> Result<Request<Empty<Bytes>>, http::Error> {
    let request = Request::builder().method(Method::CONNECT).uri(authority).header(header::HOST, authority);
    let request = match &proxy.auth {
        Some(auth) => request.header(header::PROXY_AUTHORIZATION, auth),
        None => request,
    };
    request.body(Empty::new())
}

/// Why there is no tunnel, by the proxy's answer.
fn refusal(proxy: &Proxy, authority: &str, status: StatusCode) -> ConnectError {
    let url = &proxy.url;
    match status.as_u16() {
        407 => ConnectError::Barred(proxy.unauthorised()),
        403 => ConnectError::Barred(format!(
            "the proxy at {url} lets nobody through to `{authority}` ({status}): have it allowed there, or name the \
             host in `no_proxy`"
        )),
        502..=504 => ConnectError::NotYet(format!("the proxy at {url} does not reach `{authority}` ({status})")),
        _ => ConnectError::Failed(format!("the proxy at {url} opens no tunnel to `{authority}` ({status})")),
    }
}

fn loss(proxy: &Proxy, loss: Loss) -> String {
    let url = &proxy.url;
    match loss {
        Loss::Reset => format!("the proxy at {url} reset the connection before it answered"),
        Loss::Closed => format!("the proxy at {url} closed the connection without an answer"),
        _ => format!("what answers at {url} is no HTTP proxy"),
    }
}
