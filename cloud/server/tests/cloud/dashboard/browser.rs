//! A headless Chromium, and its pages as a person uses them.
//!
//! Controls are found by their role and name in Chromium's accessibility tree, and are pressed with the mouse or the
//! keyboard: a control that cannot be found in this way cannot be used in it either. Every step waits, with a deadline,
//! until it can be done.

mod devtools;
mod looks;
mod steps;

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use devtools::DevTools;

use crate::harness::PATIENCE;

/// The variable with the path of the program.
const PROGRAM: &str = "SUPERVISOR_TEST_CHROMIUM";
/// Interval between two checks of a page.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// Reports actions that a page's policy blocked; the console does not always.
const TELL_OF_VIOLATIONS: &str = "addEventListener('securitypolicyviolation', event => \
    console.error('policy: ' + event.violatedDirective + ' of ' + event.blockedURI + ' ' + event.sample))";

/// The running browser. Tests that run at the same time use the same one, since its start takes longer than most of
/// what they do with it; cookies and storage belong to each person alone ([`Chromium::somebody`]).
static RUNNING: tokio::sync::Mutex<Weak<BrowserProcess>> =
    tokio::sync::Mutex::const_new(Weak::new());

/// A connection to a running browser, which ends with the last connection of all tests. Everything that was opened
/// through a connection ends with it.
#[derive(Clone)]
pub(crate) struct Chromium {
    _browser: Arc<BrowserProcess>,
    tools: Arc<DevTools>,
}

/// A running browser with a fresh profile.
struct BrowserProcess {
    process: Mutex<Child>,
    /// Of its command interface.
    address: String,
    _profile: tempfile::TempDir,
}

impl Chromium {
    /// Connects to a browser, and starts the program in `SUPERVISOR_TEST_CHROMIUM` if none runs; none if it is not set.
    pub(crate) async fn start() -> Option<Self> {
        let browser = {
            let mut running = RUNNING.lock().await;
            match running.upgrade() {
                Some(browser) => browser,
                None => {
                    let browser = Arc::new(BrowserProcess::start()?);
                    *running = Arc::downgrade(&browser);
                    browser
                }
            }
        };
        let tools = Arc::new(DevTools::connect(&browser.address).await);
        Some(Chromium {
            _browser: browser,
            tools,
        })
    }

    /// Sends a command to the browser itself, and returns this text of its answer.
    async fn text_of(&self, command: &str, parameters: Value, name: &str) -> String {
        let answer = self.tools.command(None, command, parameters).await;
        let answer = answer.unwrap_or_else(|why| panic!("{command}: {why}"));
        answer[name].as_str().unwrap_or_default().to_owned()
    }

    /// Opens an empty page for a new person, with separate cookies; addresses are below `site`.
    pub(crate) async fn somebody(&self, site: &str) -> Visitor {
        let command = "Target.createBrowserContext";
        let context = json!({ "disposeOnDetach": true });
        let context = self.text_of(command, context, "browserContextId").await;
        self.page(context, site).await
    }

    async fn page(&self, context: String, site: &str) -> Visitor {
        let page = json!({
            "url": "about:blank",
            "browserContextId": context,
            "newWindow": true,
            "width": 1280,
            "height": 900,
        });
        let target = self.text_of("Target.createTarget", page, "targetId").await;
        let page = json!({ "targetId": target, "flatten": true });
        let session = self
            .text_of("Target.attachToTarget", page, "sessionId")
            .await;
        let complaints = Complaints::default();
        let gathered = complaints.clone();
        self.tools.listen(&session, move |event, parameters| {
            gathered.gather(event, parameters);
        });
        let visitor = Visitor {
            chromium: self.clone(),
            context,
            target,
            session,
            site: site.to_owned(),
            complaints,
            within: None,
        };
        for domain in [
            "Page.enable",
            "Log.enable",
            "Runtime.enable",
            "Accessibility.enable",
        ] {
            visitor.command(domain, json!({})).await;
        }
        // As if it were the only window: another test's has the focus.
        let focus = json!({ "enabled": true });
        visitor
            .command("Emulation.setFocusEmulationEnabled", focus)
            .await;
        let script = json!({ "source": TELL_OF_VIOLATIONS });
        visitor
            .command("Page.addScriptToEvaluateOnNewDocument", script)
            .await;
        visitor
    }
}

impl BrowserProcess {
    /// Starts the program in `SUPERVISOR_TEST_CHROMIUM`; none if it is not set.
    fn start() -> Option<Self> {
        let Some(program) = std::env::var_os(PROGRAM) else {
            println!("SKIPPED: {PROGRAM} is not set, so nothing was tried in a browser");
            return None;
        };
        let profile = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(program);
        command
            .args(["--headless=new", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(["--no-first-run", "--no-default-browser-check"])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
            ])
            .args([
                "--disable-sync",
                "--disable-extensions",
                "--disable-breakpad",
            ])
            .args(["--disable-gpu", "--disable-dev-shm-usage", "--mute-audio"])
            .args(["--password-store=basic", "--force-color-profile=srgb"])
            // Several tests have their windows in it, and all of them are in use.
            .args([
                "--disable-background-timer-throttling",
                "--disable-backgrounding-occluded-windows",
                "--disable-renderer-backgrounding",
            ])
            // Data that it stores elsewhere.
            .env("HOME", profile.path())
            .env("XDG_CONFIG_HOME", profile.path())
            .env("XDG_CACHE_HOME", profile.path())
            .env("TMPDIR", profile.path())
            .env_remove("DBUS_SESSION_BUS_ADDRESS")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Its helper processes end with it.
            .process_group(0);
        if rustix::process::geteuid().is_root() {
            // As root, it cannot use its sandbox.
            command.arg("--no-sandbox");
        }
        let mut process = ProcessGuard(Some(command.arg("about:blank").spawn().expect("Chromium")));
        let address = address(process.0.as_mut().expect("it"));
        Some(BrowserProcess {
            process: Mutex::new(process.0.take().expect("it")),
            address,
            _profile: profile,
        })
    }
}

impl Drop for BrowserProcess {
    fn drop(&mut self) {
        end(&mut self.process.lock().expect("it"));
    }
}

/// A process that is ended unless somebody takes it.
struct ProcessGuard(Option<Child>);

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        if let Some(process) = &mut self.0 {
            end(process);
        }
    }
}

/// Ends a browser and its helper processes, and waits for it.
fn end(process: &mut Child) {
    let group = i32::try_from(process.id()).ok();
    if let Some(group) = group.and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = process.wait();
}

/// Reads the address of a starting browser's command interface.
fn address(process: &mut Child) -> String {
    let mut log = BufReader::new(process.stderr.take().expect("its log"));
    let mut stderr = String::new();
    let begun = Instant::now();
    loop {
        let from = stderr.len();
        let read = log.read_line(&mut stderr).expect("a line");
        assert!(read > 0, "Chromium ended: {stderr}");
        if let Some((_, address)) = stderr[from..].split_once("DevTools listening on ") {
            let address = address.trim().to_owned();
            // Its output must be read, or it blocks.
            std::thread::spawn(move || log.read_to_end(&mut Vec::new()));
            return address;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "Chromium did not start: {stderr}"
        );
    }
}

/// Complaints of a page: errors of its scripts, and violations of its policy.
#[derive(Debug, Clone, Default)]
struct Complaints(Arc<Mutex<Vec<String>>>);

impl Complaints {
    fn list(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.0.lock().expect("a list")
    }

    fn gather(&self, event: &str, parameters: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let complaint = match event {
            "Runtime.consoleAPICalled" => {
                let kind = text(&parameters["type"]);
                let values = parameters["args"].as_array().into_iter().flatten();
                let values = values.filter_map(|it| it.get("value").map(Value::to_string));
                let line = values.collect::<Vec<_>>().join(" ");
                let is_one = ["error", "warning", "assert"].contains(&kind.as_str());
                // htmx logs each form that is refused; people see the refusal at the form.
                (is_one && !line.contains("Response Status Error Code 4"))
                    .then(|| format!("console {kind}: {line}"))
            }
            "Runtime.exceptionThrown" => {
                let details = &parameters["exceptionDetails"];
                let what = details["exception"]["description"].as_str();
                Some(format!("thrown: {} {what:?}", text(&details["text"])))
            }
            "Log.entryAdded" => {
                let entry = &parameters["entry"];
                let (source, level) = (text(&entry["source"]), text(&entry["level"]));
                // A status of 401 or a restarting server is not a fault of the page.
                (level == "error" && source != "network")
                    .then(|| format!("{source}: {}", text(&entry["text"])))
            }
            _ => None,
        };
        self.list().extend(complaint);
    }
}

/// A person who views a page, or a part of it.
#[derive(Clone)]
pub(crate) struct Visitor {
    chromium: Chromium,
    /// The browser context, which owns the cookies.
    context: String,
    /// The browser's id of the page.
    target: String,
    /// The session for commands to the page.
    session: String,
    site: String,
    complaints: Complaints,
    /// An expression for the part in view; none for the whole page.
    within: Option<String>,
}

impl Visitor {
    /// Opens another page for the same person.
    pub(crate) async fn another(&self) -> Visitor {
        let chromium = self.chromium.clone();
        chromium.page(self.context.clone(), &self.site).await
    }

    /// Closes the page.
    ///
    /// # Panics
    /// If a page complained of anything.
    pub(crate) async fn leave(self) {
        let complaints = self.complaints().await;
        assert!(
            complaints.is_empty(),
            "the page complained: {complaints:#?}"
        );
        let target = json!({ "targetId": self.target });
        let closed = self
            .chromium
            .tools
            .command(None, "Target.closeTarget", target);
        closed.await.expect("the page closes");
    }

    /// Returns the complaints of pages so far.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        // Complaints before this answer have been received.
        self.script("1").await;
        self.complaints.list().clone()
    }

    /// Sends one command to the browser, for this page. If the page navigates during that, the command is for the new
    /// page.
    async fn command(&self, name: &'static str, parameters: Value) -> Value {
        let begun = Instant::now();
        loop {
            match self.try_command(name, parameters.clone()).await {
                Ok(answer) => return answer,
                Err(why) => assert!(
                    is_of_a_page_that_went(&why) && begun.elapsed() < PATIENCE,
                    "{name} {parameters}: {why}"
                ),
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn try_command(&self, name: &'static str, parameters: Value) -> Result<Value, String> {
        let command = self
            .chromium
            .tools
            .command(Some(&self.session), name, parameters);
        let answer = tokio::time::timeout(PATIENCE, command).await;
        answer.unwrap_or_else(|_| Err(format!("no answer within {PATIENCE:?}")))
    }

    /// Returns the value of an expression, or the result of a promise. If the page navigates during that, the value is
    /// that of the new page.
    pub(crate) async fn script(&self, expression: &str) -> Value {
        let request =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.command("Runtime.evaluate", request).await;
        let wrong = answer.get("exceptionDetails");
        let wrong = wrong.map(|it| it["exception"]["description"].clone());
        assert!(wrong.is_none(), "{expression}: {wrong:?}");
        answer["result"]["value"].clone()
    }
}

/// Whether Chromium refused because the page has navigated since.
fn is_of_a_page_that_went(why: &str) -> bool {
    [
        "navigated or closed",
        "context was destroyed",
        "Cannot find",
        "Not attached",
    ]
    .iter()
    .any(|words| why.contains(words))
}

/// Waits until a value is found.
async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(why) => assert!(
                begun.elapsed() < PATIENCE,
                "not within {PATIENCE:?}: {what}: {why}"
            ),
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
