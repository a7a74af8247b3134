//! Starting, stopping and dying.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use gate_model::EngineParams;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::Truth;
use crate::alarm::Alarm;
use crate::connection::serve;
use crate::ledger::Ledger;
use crate::queue::Queue;

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The address is taken, foreign or forbidden.
    #[error("cannot listen on {address}: {source}; choose another address, or port 0 for any free port")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// No event loop or no thread.
    #[error("cannot start the simulated engine's thread: {0}")]
    Thread(#[source] io::Error),
}

/// The simulated engine on a socket, on a thread of its own. Dropping it stops it.
///
/// It plays the script of the request's number: all accepted generation requests count, from 0, whatever their dialect. A
/// request's script begins when [`gate_engine::Engine`] serves it, whose epoch is the server's start; with limited
/// slots a client that leaves gives its slot, or its place in the queue, back at once. The server cannot know which of them are warm-up, so here `script`
/// and `dies_after` count them all: [`gate_engine::after_warmup`] shifts parameters that count measured ones. When it
/// dies, the port refuses connections and everything that is open is reset, the request with which it died included.
/// With `dies_after` 0 it is dead from the start.
pub struct Server {
    address: SocketAddr,
    params: EngineParams,
    ledger: Arc<Ledger>,
    queue: Arc<Queue>,
    stop: StopHandle,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Stops a [`Server`] from anywhere.
#[derive(Clone, Debug)]
pub struct StopHandle(Arc<Notify>);

impl StopHandle {
    /// Ends the server: open connections are closed as they are. Returns at once.
    pub fn stop(&self) {
        self.0.notify_one();
    }
}

impl Server {
    /// Listens and serves from now on; `ready_after` counts from here. Port 0 takes any free port.
    ///
    /// # Errors
    /// [`SimError`] where the address cannot be had, or no thread.
    pub fn start(listen: SocketAddr, params: EngineParams) -> Result<Self, SimError> {
        let listen_error = |source| SimError::Listen { address: listen, source };
        let listener = StdListener::bind(listen).map_err(listen_error)?;
        listener.set_nonblocking(true).map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(SimError::Thread)?;
        let listener = {
            let _context = runtime.enter();
            TcpListener::from_std(listener).map_err(listen_error)?
        };

        let ledger = Arc::new(Ledger::new());
        let queue = Arc::new(Queue::new(&params, ledger.started()));
        let stop = StopHandle(Arc::new(Notify::new()));
        let alarm = {
            let _context = runtime.enter();
            Alarm::new()
        };
        let engine = Engine {
            params: params.clone(),
            ledger: ledger.clone(),
            queue: queue.clone(),
            alarm,
            death: Notify::new(),
            dead: watch::Sender::new(false),
        };
        let stopped = stop.0.clone();
        let thread = Builder::new()
            .name("gate-sim".to_owned())
            .spawn(move || run(&runtime, listener, engine, &stopped))
            .map_err(SimError::Thread)?;
        Ok(Self { address, params, ledger, queue, stop, thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it did so far; still there when it is dead.
    #[must_use]
    pub fn truth(&self) -> Truth {
        self.ledger.truth().of_engine(&self.params, &self.queue)
    }

    /// Stops it from anywhere.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Blocks until it dies or is stopped.
    pub fn wait(mut self) {
        self.join();
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic has been reported on stderr by then; there is nothing to add.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.stop();
        self.join();
    }
}

/// What every connection shares.
pub(crate) struct Engine {
    pub(crate) params: EngineParams,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) alarm: Alarm,
    /// Told when the request with which the engine dies has arrived.
    pub(crate) death: Notify,
    /// Whether the port is closed and every connection is to be reset.
    pub(crate) dead: watch::Sender<bool>,
}

impl Engine {
    pub(crate) fn truth(&self) -> Truth {
        self.ledger.truth().of_engine(&self.params, &self.queue)
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ledger.age() >= self.params.ready_after
    }

    /// Whether the engine dies when this request arrives, or has died before.
    pub(crate) fn is_fatal(&self, number: u32) -> bool {
        self.params.dies_after.is_some_and(|count| number.saturating_add(1) >= count)
    }
}

fn run(runtime: &Runtime, listener: TcpListener, engine: Engine, stopped: &Notify) {
    if engine.params.dies_after == Some(0) {
        return;
    }
    runtime.block_on(async {
        let engine = Arc::new(engine);
        let mut connections = JoinSet::new();
        let clockwork = engine.clone();
        let clockwork = tokio::spawn(async move { clockwork.alarm.ring().await });
        let growing = engine.clone();
        let growing = tokio::spawn(async move { growing.queue.grow(&growing.alarm).await });
        loop {
            tokio::select! {
                biased;
                () = stopped.notified() => return,
                () = engine.death.notified() => break,
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => drop(connections.spawn(serve(stream, engine.clone()))),
                    // Out of descriptors, most likely: some will come back.
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                },
            }
        }
        // The port closes first: a client that sees its connection reset finds it closed.
        drop(listener);
        engine.ledger.died();
        engine.dead.send_replace(true);
        while connections.join_next().await.is_some() {}
        clockwork.abort();
        growing.abort();
    });
}
