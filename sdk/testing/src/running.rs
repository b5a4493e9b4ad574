//! A device with plugins, for a test to call and watch.

mod device_calls;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::answer::Answer;
use crate::control::{CALLER, CallerScope, Command, DEVICE, GpioState, HARNESS, UpdateLocks};
use crate::tool::Tool;

/// How long a test waits for a condition.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it checks the condition.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A running device. Dropping it stops it, and removes its files.
pub struct RunningHost {
    pub(crate) tool: Tool,
}

impl RunningHost {
    /// Calls `GET path`, which may have a query.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(String::new())).await
    }

    /// Calls `POST path` with a JSON body.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send_json(Method::POST, path, &body).await
    }

    /// Calls `PATCH path` with a JSON body.
    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send_json(Method::PATCH, path, &body).await
    }

    async fn send_json(&self, method: Method, path: &str, body: &Value) -> Answer {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", "application/json");
        self.send(request.body(body.to_string())).await
    }

    /// Makes any call whose body is text or bytes, and reads the answer to its end.
    ///
    /// # Panics
    /// If the request is not valid, or the answer ends early.
    pub async fn send<B: Into<Bytes>>(&self, request: http::Result<Request<B>>) -> Answer {
        self.send_by(CallerScope::DeviceKey, request).await
    }

    /// Like [`Self::send`], for a caller with this scope instead of one with the device's key.
    ///
    /// # Panics
    /// Those of [`Self::send`].
    pub async fn send_by<B: Into<Bytes>>(
        &self,
        caller: CallerScope,
        request: http::Result<Request<B>>,
    ) -> Answer {
        let request = request.unwrap_or_else(|error| panic!("no request: {error}"));
        let request = request.map(|body| Full::new(body.into()));
        match self.whole(&caller, request).await {
            Ok(answer) => answer,
            Err(error) => panic!("{error:#}"),
        }
    }

    async fn whole(&self, caller: &CallerScope, request: Request<Full<Bytes>>) -> Result<Answer> {
        let (parts, body) = self.try_call(caller, request).await?.into_parts();
        let body = body.collect().await.context("failed to read the answer")?;
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body: body.to_bytes(),
        })
    }

    /// Makes a call with a body of any kind, for a caller with the device's key; the answer's body arrives as the
    /// plugin writes it.
    ///
    /// # Panics
    /// If the device does not answer.
    pub async fn call<B>(&self, request: Request<B>) -> Response<Incoming>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        match self.try_call(&CallerScope::DeviceKey, request).await {
            Ok(response) => response,
            Err(error) => panic!("{error:#}"),
        }
    }

    async fn try_call<B>(
        &self,
        caller: &CallerScope,
        mut request: Request<B>,
    ) -> Result<Response<Incoming>>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let caller = serde_json::to_string(caller)?;
        let headers = request.headers_mut();
        headers.insert(CALLER, HeaderValue::try_from(caller)?);
        headers.insert(header::HOST, HeaderValue::from_static(DEVICE));
        self.tool.send(request).await
    }

    /// Sends the device a request other than one for its plugins' routes.
    async fn ask<T: DeserializeOwned>(&self, command: &Command) -> T {
        match self.try_ask(command).await {
            Ok(answer) => answer,
            Err(error) => panic!("{error:#}"),
        }
    }

    async fn try_ask<T: DeserializeOwned>(&self, command: &Command) -> Result<T> {
        let body = serde_json::to_string(command)?;
        let request = Request::post("/")
            .header(header::HOST, HARNESS)
            .body(Full::<Bytes>::from(body))?;
        let answer = self.tool.send(request).await?.into_body();
        let answer = answer
            .collect()
            .await
            .context("failed to read the answer")?;
        serde_json::from_slice(&answer.to_bytes())
            .context("the tool gave an unexpected answer: update it and `supervisor-testing`")
    }

    /// Reads the brightness of the LED.
    ///
    /// # Panics
    /// If there is no such LED.
    pub async fn led(&self, name: &str) -> u32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(brightness) = self.led_now(name) {
                return brightness;
            }
            assert!(Instant::now() < deadline, "there is no LED `{name}`");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits until the LED shows `brightness`.
    ///
    /// # Panics
    /// If it does not within half a minute.
    pub async fn led_becomes(&self, name: &str, brightness: u32) {
        let deadline = Instant::now() + PATIENCE;
        while self.led_now(name) != Some(brightness) {
            assert!(
                Instant::now() < deadline,
                "the LED `{name}` shows {:?} and not {brightness}",
                self.led_now(name)
            );
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Returns `None` at the moment when a write has emptied the file but not filled it yet, which does not exist with
    /// the kernel's file.
    fn led_now(&self, name: &str) -> Option<u32> {
        let folder = self.root().join("sys/class/leds").join(name);
        let text = std::fs::read_to_string(folder.join("brightness")).ok()?;
        text.trim().parse().ok()
    }

    async fn gpio_line(&self, line: &str) -> GpioState {
        let state: Option<GpioState> = self.ask(&Command::GpioLine(line.to_owned())).await;
        state.unwrap_or_else(|| panic!("there is no GPIO line `{line}`"))
    }

    /// Returns whether the GPIO line is on.
    ///
    /// # Panics
    /// If there is no such line.
    pub async fn gpio_is_on(&self, line: &str) -> bool {
        self.gpio_line(line).await.is_on
    }

    /// Switches the GPIO line on or off, as the hardware connected to it does.
    ///
    /// # Panics
    /// If there is no such line.
    pub async fn drive_gpio(&self, line: &str, on: bool) {
        let is_there: bool = self.ask(&Command::DriveGpio(line.to_owned(), on)).await;
        assert!(is_there, "there is no GPIO line `{line}`");
    }

    /// Waits until a plugin is waiting for edges of the GPIO line.
    ///
    /// # Panics
    /// If there is no such line, or no plugin does within half a minute.
    pub async fn gpio_is_waited_for(&self, line: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.gpio_line(line).await.is_waited_for {
            assert!(
                Instant::now() < deadline,
                "no plugin waits for edges of the GPIO line `{line}`"
            );
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Sets registers of an I2C chip, starting at this one, as the chip itself does.
    ///
    /// # Panics
    /// If there is no such chip.
    pub async fn set_i2c_registers(&self, bus: &str, address: u8, register: u8, bytes: &[u8]) {
        let set = Command::SetI2cRegisters(bus.to_owned(), address, register, bytes.to_owned());
        let is_there: bool = self.ask(&set).await;
        assert!(
            is_there,
            "there is no chip at {address:#04x} of the I2C bus `{bus}`"
        );
    }

    /// Reads a register of an I2C chip.
    ///
    /// # Panics
    /// If there is no such chip.
    pub async fn i2c_register(&self, bus: &str, address: u8, register: u8) -> u8 {
        let read = Command::I2cRegister(bus.to_owned(), address, register);
        let value: Option<u8> = self.ask(&read).await;
        value.unwrap_or_else(|| panic!("there is no chip at {address:#04x} of the I2C bus `{bus}`"))
    }

    /// Waits until the plugin has been called `times` times, including calls of its actions.
    ///
    /// # Panics
    /// If it is not within half a minute.
    pub async fn called(&self, plugin: &str, times: u64) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let report = self.report().await;
            let mut plugins = report.as_array().into_iter().flatten();
            let calls = plugins.find(|report| report["name"] == plugin);
            let calls = calls.and_then(|report| report["calls"].as_u64());
            if calls.is_some_and(|calls| calls >= times) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "`{plugin}` was called {} times, not {times}",
                calls.unwrap_or(0)
            );
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Returns the series that `plugin` has reported with the capability `metrics`, sorted by name: each as `GET
    /// /metrics` shows it, but without the plugin's name, with its value.
    pub async fn metrics(&self, plugin: &str) -> Vec<(String, f64)> {
        self.ask(&Command::Metrics(plugin.to_owned())).await
    }

    /// Returns the fields that `plugin` adds to the device's report with the capability `report`, sorted by name: each
    /// field's name with its value and, if it has one, its unit.
    pub async fn fields(&self, plugin: &str) -> Vec<(String, Value, Option<String>)> {
        let report = self.report().await;
        let mut plugins = report.as_array().into_iter().flatten();
        let report = plugins.find(|report| report["name"] == plugin);
        let fields = report.and_then(|report| report["fields"].as_array());
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let fields = fields.into_iter().flatten().map(|field| {
            let name = text(&field["name"]).unwrap_or_default();
            (name, field["value"].clone(), text(&field["unit"]))
        });
        fields.collect()
    }

    /// Returns the units that were restarted, oldest first.
    pub async fn restarted_units(&self) -> Vec<String> {
        self.ask(&Command::RestartedUnits).await
    }

    /// Holds an update lock from now on, as an app would: a caller that requests the locks without force receives
    /// `message`.
    pub async fn hold_update_lock(&self, message: &str) {
        let held = Some(message.to_owned());
        self.ask(&Command::HoldUpdateLock(held)).await
    }

    /// Releases the lock.
    pub async fn release_update_lock(&self) {
        self.ask(&Command::HoldUpdateLock(None)).await
    }

    /// Returns how often plugins have taken the update locks of all apps, and how often they did so by force.
    pub async fn update_locks_taken(&self) -> (usize, usize) {
        let locks: UpdateLocks = self.ask(&Command::UpdateLocks).await;
        (locks.times, locks.forced)
    }

    /// Returns whether a plugin holds the locks now.
    pub async fn update_locks_are_held(&self) -> bool {
        let locks: UpdateLocks = self.ask(&Command::UpdateLocks).await;
        locks.are_held
    }

    /// Returns the answer to `GET /v3/plugins`.
    pub async fn report(&self) -> Value {
        self.ask(&Command::Report).await
    }

    /// Returns the root folder of the test's device.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.tool.root.clone()
    }

    /// Stops everything that runs in the background, as the supervisor does when it is stopped. The device's files exist
    /// until this is dropped.
    pub async fn stop(&self) {
        self.ask(&Command::Stop).await
    }
}
