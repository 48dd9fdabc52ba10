//! A browser without a window: Chromium, which gets its commands over its debugging pipe.
//!
//! The DevTools protocol: JSON messages, each with a zero byte after it, on descriptors 3 and 4. `sh` puts our pipes
//! there, so that nothing has to be unsafe. The page's complaints (exceptions, errors of the console) and
//! which addresses it asks for are kept.

mod base64;

use crate::install;
use crate::project::{Project, Scratch};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The browser's command.
const CHROMIUM: &str = "chromium";
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a page is asked whether something came true.
const POLL: Duration = Duration::from_millis(50);

/// The screen that the page is shown on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Its name, for people.
    pub name: &'static str,
    /// Pixels of style sheets.
    pub width: u32,
    /// See [`Self::width`].
    pub height: u32,
    /// Touched, and shown as on a phone.
    pub mobile: bool,
}

/// The colour scheme that the person prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

/// A browser with one page; it ends with this value.
pub struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    session: String,
    number: u64,
    /// The errors in the page.
    pub complaints: Vec<String>,
    /// Addresses that the page asked for.
    pub requests: Vec<String>,
    _profile: Scratch,
}

impl Browser {
    /// Starts it.
    pub fn start(project: &Project) -> Result<Self> {
        install::browser(CHROMIUM)?;
        let profile = project.scratch()?;
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null", CHROMIUM]);
        command.args(["--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu"]);
        command.args(["--hide-scrollbars", "--disable-background-networking", "--disable-component-update"]);
        if install::is_root() {
            // Its own sandbox needs somebody to become.
            command.arg("--no-sandbox");
        }
        command.arg(format!("--user-data-dir={}", profile.file("profile").display())).arg("about:blank");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start sh")?;
        let input = child.stdin.take().context("no pipe to the browser")?;
        let output = child.stdout.take().context("no pipe from the browser")?;
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            for message in BufReader::new(output).split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { continue };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let (complaints, requests) = (Vec::new(), Vec::new());
        let session = String::new();
        let mut browser = Self { child, input, messages, session, number: 0, complaints, requests, _profile: profile };
        let target = browser.ask("Target.createTarget", json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.ask("Target.attachToTarget", attach)?;
        browser.session = session["sessionId"].as_str().context("no session")?.into();
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.ask(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(browser)
    }

    /// Calls a method of the protocol; gives its result.
    fn ask(&mut self, method: &str, parameters: Value) -> Result<Value> {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.input.write_all(&bytes).and_then(|()| self.input.flush()).context("the browser is gone")?;
        let end = Instant::now() + PATIENCE;
        loop {
            match self.messages.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(mut answer) if answer["id"] == self.number => {
                    if let Some(error) = answer["error"]["message"].as_str() {
                        bail!("{method}: {error}");
                    }
                    return Ok(answer["result"].take());
                }
                Ok(event) => self.note(&event),
                Err(RecvTimeoutError::Timeout) => bail!("{method}: the browser does not answer"),
                Err(RecvTimeoutError::Disconnected) => bail!("{method}: the browser has ended"),
            }
        }
    }

    fn note(&mut self, event: &Value) {
        let parameters = &event["params"];
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), String::from);
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                let details = &parameters["exceptionDetails"];
                self.complaints.push(format!("{} {}", details["text"], details["exception"]["description"]));
            }
            Some("Runtime.consoleAPICalled") if parameters["type"] == "error" => {
                self.complaints.push(parameters["args"].to_string());
            }
            // A request that failed is the network's fault, and the page shows it.
            Some("Log.entryAdded") if parameters["entry"]["level"] == "error" => {
                let entry = &parameters["entry"];
                if entry["source"] != "network" {
                    self.complaints.push(text(&entry["text"]));
                }
            }
            Some("Network.requestWillBeSent") => self.requests.push(text(&parameters["request"]["url"])),
            _ => {}
        }
    }

    /// Sets the screen and the colour scheme.
    pub fn show_on(&mut self, screen: Screen, scheme: Scheme) -> Result<()> {
        let Screen { width, height, mobile, .. } = screen;
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.ask("Emulation.setDeviceMetricsOverride", metrics)?;
        let value = if scheme == Scheme::Dark { "dark" } else { "light" };
        // Nothing moves slowly: elements are measured where they will stay.
        let features = json!([
            { "name": "prefers-color-scheme", "value": value },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        self.ask("Emulation.setEmulatedMedia", json!({ "features": features })).map(drop)
    }

    /// Cuts the network, or gives it back.
    pub fn set_offline(&mut self, offline: bool) -> Result<()> {
        let conditions = json!({ "offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        self.ask("Network.emulateNetworkConditions", conditions).map(drop)
    }

    /// Opens an address.
    pub fn open(&mut self, address: &str) -> Result<()> {
        let opened = self.ask("Page.navigate", json!({ "url": address }))?;
        match opened["errorText"].as_str() {
            Some(error) => bail!("{address}: {error}"),
            None => self.wait_for("document.readyState === 'complete'", PATIENCE),
        }
    }

    /// The value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Result<Value> {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.ask("Runtime.evaluate", parameters)?;
        if !answer["exceptionDetails"].is_null() {
            bail!("{expression}: {}", answer["exceptionDetails"]["exception"]["description"]);
        }
        Ok(answer["result"]["value"].take())
    }

    /// Waits until an expression is true.
    pub fn wait_for(&mut self, expression: &str, limit: Duration) -> Result<()> {
        let start = Instant::now();
        while self.value(expression)? != true {
            ensure!(start.elapsed() < limit, "after {} seconds this is not true: {expression}", limit.as_secs());
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// The page as a picture (PNG), as high as it is at most.
    pub fn picture(&mut self, screen: Screen) -> Result<Vec<u8>> {
        let clip = json!({ "x": 0, "y": 0, "width": screen.width, "height": screen.height, "scale": 1 });
        let parameters = json!({ "format": "png", "optimizeForSpeed": false, "clip": clip });
        let answer = self.ask("Page.captureScreenshot", parameters)?;
        base64::decode(answer["data"].as_str().context("no picture")?).context("the picture is damaged")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends its own children; if it does not answer it is ended.
        let _ = self.ask("Browser.close", json!({}));
        let end = Instant::now() + Duration::from_secs(3);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            thread::sleep(POLL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
