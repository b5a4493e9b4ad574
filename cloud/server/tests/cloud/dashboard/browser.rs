//! A headless Chromium, and its pages as a person meets them.
//!
//! What is pressed and filled in is found by its role and name in the tree that Chromium makes for assistive
//! programs, and is pressed with the mouse or the keyboard: what cannot be found so cannot be used so. Every
//! step waits, with a deadline, until it can be done.

mod looks;
mod steps;

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chromiumoxide::cdp::browser_protocol::browser::BrowserContextId;
use chromiumoxide::cdp::browser_protocol::log::EventEntryAdded;
use chromiumoxide::cdp::browser_protocol::target::{
    CreateBrowserContextParams, CreateTargetParams,
};
use chromiumoxide::cdp::js_protocol::runtime::{EventConsoleApiCalled, EventExceptionThrown};
use chromiumoxide::handler::HandlerConfig;
use chromiumoxide::types::{Method, MethodId};
use chromiumoxide::{Browser, Page};
use futures::StreamExt as _;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// The variable that names the program.
const PROGRAM: &str = "SUPERVISOR_TEST_CHROMIUM";
/// How long any step may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at a page.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// Tells of what a page was kept from doing; the console would not always.
const TELL_OF_VIOLATIONS: &str = "addEventListener('securitypolicyviolation', event => \
    console.error('policy: ' + event.violatedDirective + ' of ' + event.blockedURI + ' ' + event.sample))";

/// A running browser with a fresh profile; both end with the last clone.
#[derive(Clone)]
pub(crate) struct Chromium(Arc<Running>);

struct Running {
    process: Mutex<Child>,
    browser: Browser,
    driver: JoinHandle<()>,
    _profile: tempfile::TempDir,
}

impl Chromium {
    /// Starts the program that `SUPERVISOR_TEST_CHROMIUM` names; nothing where it is not set.
    pub(crate) async fn start() -> Option<Self> {
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
            // Whatever it keeps elsewhere.
            .env("HOME", profile.path())
            .env("XDG_CONFIG_HOME", profile.path())
            .env("XDG_CACHE_HOME", profile.path())
            .env_remove("DBUS_SESSION_BUS_ADDRESS")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Its helpers end with it.
            .process_group(0);
        if rustix::process::geteuid().is_root() {
            // As root it has no sandbox.
            command.arg("--no-sandbox");
        }
        let mut process = Ending(Some(command.arg("about:blank").spawn().expect("Chromium")));
        let address = address(process.0.as_mut().expect("it"));
        let configuration = HandlerConfig {
            viewport: None,
            ..HandlerConfig::default()
        };
        let (browser, mut handler) = Browser::connect_with_config(address, configuration)
            .await
            .expect("a connection to Chromium");
        let driver = tokio::spawn(async move { while handler.next().await.is_some() {} });
        Some(Chromium(Arc::new(Running {
            process: Mutex::new(process.0.take().expect("it")),
            browser,
            driver,
            _profile: profile,
        })))
    }

    /// Somebody new, whose cookies nobody shares, before an empty page; addresses are below `site`.
    pub(crate) async fn somebody(&self, site: &str) -> Visitor {
        let context = CreateBrowserContextParams::default();
        let context = self.0.browser.create_browser_context(context).await;
        self.page(context.expect("a context"), site).await
    }

    async fn page(&self, context: BrowserContextId, site: &str) -> Visitor {
        let target = CreateTargetParams::builder()
            .url("about:blank")
            .browser_context_id(context.clone())
            .new_window(true)
            .width(1280)
            .height(900)
            .build()
            .expect("a target");
        let page = self.0.browser.new_page(target).await.expect("a page");
        let complaints = Complaints::default();
        complaints.gather(&page).await;
        let visitor = Visitor {
            chromium: self.clone(),
            context,
            page,
            site: site.to_owned(),
            complaints,
            within: None,
        };
        let script = json!({ "source": TELL_OF_VIOLATIONS });
        visitor
            .command("Page.addScriptToEvaluateOnNewDocument", script)
            .await;
        visitor.command("Accessibility.enable", json!({})).await;
        visitor
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.driver.abort();
        end(&mut self.process.lock().expect("it"));
    }
}

/// A process that ends where nobody takes it.
struct Ending(Option<Child>);

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(process) = &mut self.0 {
            end(process);
        }
    }
}

/// Ends a browser with its helpers, and waits for it.
fn end(process: &mut Child) {
    let group = i32::try_from(process.id()).ok();
    if let Some(group) = group.and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = process.wait();
}

/// Where a browser that starts is to be told what to do.
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
            // Somebody has to read on, or it waits for it.
            std::thread::spawn(move || log.read_to_end(&mut Vec::new()));
            return address;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "Chromium did not start: {stderr}"
        );
    }
}

/// What a page complained of: errors of its scripts, and what its policy forbade.
#[derive(Debug, Clone, Default)]
struct Complaints(Arc<Mutex<Vec<String>>>);

impl Complaints {
    fn list(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.0.lock().expect("a list")
    }

    async fn gather(&self, page: &Page) {
        let mut console = page
            .event_listener::<EventConsoleApiCalled>()
            .await
            .expect("events");
        let complaints = self.clone();
        tokio::spawn(async move {
            while let Some(event) = console.next().await {
                let kind = format!("{:?}", event.r#type).to_lowercase();
                if ["error", "warning", "assert"].contains(&kind.as_str()) {
                    let values: Vec<String> = event
                        .args
                        .iter()
                        .filter_map(|it| it.value.as_ref().map(Value::to_string))
                        .collect();
                    let line = values.join(" ");
                    // htmx tells of each form that is refused; that is shown to people where they filled it in.
                    if !line.contains("Response Status Error Code 4") {
                        complaints.list().push(format!("console {kind}: {line}"));
                    }
                }
            }
        });
        let mut thrown = page
            .event_listener::<EventExceptionThrown>()
            .await
            .expect("events");
        let complaints = self.clone();
        tokio::spawn(async move {
            while let Some(event) = thrown.next().await {
                let details = &event.exception_details;
                let what = details.exception.as_ref();
                let what = what.and_then(|it| it.description.clone());
                complaints
                    .list()
                    .push(format!("thrown: {} {what:?}", details.text));
            }
        });
        let mut log = page
            .event_listener::<EventEntryAdded>()
            .await
            .expect("events");
        let complaints = self.clone();
        tokio::spawn(async move {
            while let Some(event) = log.next().await {
                let entry = &event.entry;
                let source = format!("{:?}", entry.source).to_lowercase();
                let level = format!("{:?}", entry.level).to_lowercase();
                // A status of 401 or a server that restarts is no fault of the page.
                if level == "error" && source != "network" {
                    complaints.list().push(format!("{source}: {}", entry.text));
                }
            }
        });
        page.enable_log().await.expect("its log");
        page.enable_runtime().await.expect("its console");
    }
}

/// A person before a page, or before a part of it.
#[derive(Clone)]
pub(crate) struct Visitor {
    chromium: Chromium,
    /// Whose cookies they are.
    context: BrowserContextId,
    page: Page,
    site: String,
    complaints: Complaints,
    /// An expression of the part that is looked at; all of the page without one.
    within: Option<String>,
}

impl Visitor {
    /// The same person before another page.
    pub(crate) async fn another(&self) -> Visitor {
        let chromium = self.chromium.clone();
        chromium.page(self.context.clone(), &self.site).await
    }

    /// Leaves.
    ///
    /// # Panics
    /// Where a page complained of anything.
    pub(crate) async fn leave(self) {
        let complaints = self.complaints().await;
        assert!(
            complaints.is_empty(),
            "the page complained: {complaints:#?}"
        );
        self.page.close().await.expect("the page closes");
    }

    /// What pages complained of up to now.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        // What came before this answer has been heard.
        self.script("1").await;
        tokio::task::yield_now().await;
        self.complaints.list().clone()
    }

    /// One command to the browser, for this page. Where the page goes to another meanwhile, it is for the other.
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
        let command = Plain { name, parameters };
        let answer = tokio::time::timeout(PATIENCE, self.page.execute(command)).await;
        match answer {
            Ok(answer) => answer
                .map(|it| it.result)
                .map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {PATIENCE:?}")),
        }
    }

    /// The value of an expression; of a promise, what it becomes. Where the page goes to another meanwhile, the
    /// value is that of the other.
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

/// Whether Chromium refused since the page that was asked went to another address.
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

/// A command with parameters as they are written: the library's own types know one version of Chromium alone.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Plain {
    #[serde(skip)]
    name: &'static str,
    parameters: Value,
}

impl Method for Plain {
    fn identifier(&self) -> MethodId {
        self.name.into()
    }
}

impl chromiumoxide::types::Command for Plain {
    type Response = Value;
}

/// Waits until there is something to find.
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
