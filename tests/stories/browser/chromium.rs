//! A small client of Chromium's DevTools protocol: one browser, a page at a time, every wait bounded.

use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

/// The longest wait for an answer or for something to hold.
const PATIENCE: Duration = Duration::from_secs(30);

/// A headless browser; killed when dropped.
pub(super) struct Chromium {
    process: Child,
    socket: WebSocket<TcpStream>,
    /// The session of the page that is open.
    session: Option<(String, String)>,
    sent: u64,
    /// What the page did since it was opened, as (method, parameters).
    events: Vec<(String, Value)>,
    _profile: tempfile::TempDir,
}

/// The browser of `GATE_CHROMIUM`, or one that the path names; `None` where there is none.
pub(super) fn executable() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("GATE_CHROMIUM").filter(|path| !path.is_empty()) {
        return Some(path.into());
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut paths = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    paths.find(|path| path.is_file())
}

impl Chromium {
    pub(super) fn launch(executable: &Path) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let process = Command::new(executable)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--disable-background-networking", "--hide-scrollbars", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", executable.display()));
        let told = profile.path().join("DevToolsActivePort");
        let deadline = Instant::now() + PATIENCE;
        let (port, path) = loop {
            let text = std::fs::read_to_string(&told).unwrap_or_default();
            let mut lines = text.lines();
            if let (Some(port), Some(path)) = (lines.next(), lines.next()) {
                break (port.parse::<u16>().unwrap(), path.to_owned());
            }
            assert!(Instant::now() < deadline, "the browser says no port");
            std::thread::sleep(Duration::from_millis(20));
        };
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (socket, _) = tungstenite::client(format!("ws://127.0.0.1:{port}{path}"), stream).unwrap();
        Self { process, socket, session: None, sent: 0, events: Vec::new(), _profile: profile }
    }

    /// Sends a command to the open page, or to the browser where there is none, and waits for its result.
    #[track_caller]
    pub(super) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": parameters});
        if let (Some((session, _)), false) = (&self.session, method.starts_with("Target.")) {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string())).unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < deadline, "no answer to {method}");
            let answer = self.receive();
            if answer["id"] == json!(self.sent) {
                assert!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
        }
    }

    fn receive(&mut self) -> Value {
        let Message::Text(text) = self.socket.read().expect("the browser answers in time") else { return Value::Null };
        let message: Value = serde_json::from_str(&text).unwrap();
        let is_of_page = self.session.as_ref().is_some_and(|(session, _)| message["sessionId"] == json!(session));
        if let (Some(method), true) = (message["method"].as_str(), is_of_page) {
            self.events.push((method.to_owned(), message["params"].clone()));
        }
        message
    }

    /// Opens a file in a page of its own with this width, and waits until its script is ready. The page before it is
    /// closed.
    pub(super) fn open(&mut self, file: &Path, width: u32) {
        if let Some((_, target)) = self.session.take() {
            self.call("Target.closeTarget", json!({"targetId": target}));
        }
        self.events.clear();
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = self.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        self.session = Some((text(&attached["sessionId"]), text(&target)));
        for domain in ["Page", "Runtime", "Network", "Log"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
        self.resize(width);
        self.call("Page.navigate", json!({"url": format!("file://{}", file.display())}));
        self.wait_for("document.documentElement?.dataset.ready === 'true'");
    }

    pub(super) fn resize(&mut self, width: u32) {
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Says whether the system likes its pages `dark` or `light`.
    pub(super) fn prefer(&mut self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub(super) fn eval(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", parameters);
        assert!(answer.get("exceptionDetails").is_none(), "{expression:.300}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page.
    #[track_caller]
    pub(super) fn wait_for(&mut self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.eval(expression) != json!(true) {
            assert!(Instant::now() < deadline, "waited in vain: {expression}\n{:#?}", self.complaints());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Errors of the console and uncaught exceptions since the page was opened.
    pub(super) fn complaints(&self) -> Vec<String> {
        let is_bad = |(method, about): &&(String, Value)| match method.as_str() {
            "Runtime.exceptionThrown" => true,
            "Runtime.consoleAPICalled" => ["error", "warning", "assert"].iter().any(|kind| about["type"] == *kind),
            "Log.entryAdded" => ["error", "warning"].iter().any(|level| about["entry"]["level"] == *level),
            _ => false,
        };
        self.events.iter().filter(is_bad).map(|(method, about)| format!("{method}: {about}")).collect()
    }

    /// The addresses that were asked for since the page was opened.
    pub(super) fn requests(&self) -> Vec<String> {
        let asked = self.events.iter().filter(|(method, _)| method == "Network.requestWillBeSent");
        asked.map(|(_, about)| about["request"]["url"].as_str().unwrap().to_owned()).collect()
    }

    pub(super) fn mouse(&mut self, kind: &str, (x, y): (f64, f64), is_down: bool) {
        let (button, buttons) = if is_down { ("left", 1) } else { ("none", 0) };
        let event = json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1});
        self.call("Input.dispatchMouseEvent", event);
    }

    pub(super) fn move_to(&mut self, point: (f64, f64)) {
        self.mouse("mouseMoved", point, false);
    }

    /// Presses the button at one point and lets it go at another.
    pub(super) fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.move_to(from);
        self.mouse("mousePressed", from, true);
        self.mouse("mouseMoved", ((from.0 + to.0) / 2.0, to.1), true);
        self.mouse("mouseMoved", to, true);
        self.mouse("mouseReleased", to, true);
    }

    /// Clicks into the middle of what a selector names.
    #[track_caller]
    pub(super) fn click(&mut self, selector: &str) {
        let middle = self.middle(selector);
        self.drag(middle, middle);
    }

    /// The middle of what a selector names, in the window, once it is scrolled into it.
    #[track_caller]
    pub(super) fn middle(&mut self, selector: &str) -> (f64, f64) {
        let [left, top, width, height] = self.place(selector);
        (left + width / 2.0, top + height / 2.0)
    }

    /// Left, top, width and height of what a selector names, in the window, once it is scrolled into it.
    #[track_caller]
    pub(super) fn place(&mut self, selector: &str) -> [f64; 4] {
        let found = self.eval(&format!(
            "(() => {{ const found = document.querySelector({selector:?}); found.scrollIntoView({{block: 'center'}});
              const {{left, top, width, height}} = found.getBoundingClientRect(); return [left, top, width, height]; }})()"
        ));
        serde_json::from_value(found).unwrap()
    }

    /// Presses a key and lets it go: `Tab`, `Enter`, `Escape`, or a character.
    pub(super) fn key(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            "ArrowRight" => (39, ""),
            "ArrowDown" => (40, ""),
            one => (u32::from(one.chars().next().unwrap()), one),
        };
        let mut event = json!({"type": "keyDown", "key": key, "windowsVirtualKeyCode": code});
        if !text.is_empty() {
            event["text"] = json!(text);
        }
        self.call("Input.dispatchKeyEvent", event);
        self.call("Input.dispatchKeyEvent", json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code}));
    }

    /// Writes a picture of the window, as a person would look at it.
    pub(super) fn picture(&mut self, file: &Path) {
        let answer = self.call("Page.captureScreenshot", json!({"format": "png", "captureBeyondViewport": true}));
        std::fs::write(file, decoded(answer["data"].as_str().unwrap())).unwrap();
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The bytes of a text in base64.
fn decoded(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = four.iter().fold(0_u32, |bits, byte| bits << 6 | u32::from(digit(*byte))) << (6 * (4 - four.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}
