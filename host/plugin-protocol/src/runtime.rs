//! The place where plugins run, as seen by their host. The two only know each other by these traits, so a runtime may
//! be in another process: it is trusted only as far as the grants of the plugin on whose behalf it speaks.

use std::any::Any;
use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{
    ActionAnswer, ActionCall, AnswerHead, Blueprint, Bound, CapabilityAnswer, CapabilityCall,
    ComponentFacts, Failure, Handle, ServedCall,
};

/// Runs plugins.
pub trait GuestRuntime: Send + Sync + 'static {
    /// Opens the compiled code in this file, unchanged from the compiler.
    ///
    /// Returns an error for code that cannot be loaded: for another version or another processor.
    fn open(&self, file: File) -> BoxFuture<'static, Result<Arc<dyn GuestCode>, String>>;

    /// Returns how many instances can exist at a time.
    fn slots(&self) -> usize;

    /// Sets how much memory the instances of all plugins may use together from now on, in bytes.
    fn set_memory(&self, bytes: usize);

    /// Returns what prevents it from running plugins, in sentences.
    fn problems(&self) -> Vec<String>;
}

/// The native code of a component.
pub trait GuestCode: Send + Sync + 'static {
    /// Returns the facts about the component.
    fn facts(&self) -> &ComponentFacts;

    /// Creates a plugin of this code, whose instances reach `host`.
    fn plugin(&self, blueprint: Blueprint, host: Arc<dyn HostCalls>) -> Arc<dyn GuestPlugin>;
}

/// A plugin that can be called. Dropping the future of a call, or the stream of its answer, ends the call and
/// everything that its instance holds. No two calls share an instance.
pub trait GuestPlugin: Send + Sync + 'static {
    /// Calls it to answer a request. The caller limits how long that may take.
    fn call(
        &self,
        serving: ServedCall,
        request: GuestRequest,
    ) -> BoxFuture<'_, Result<Outcome, Failure>>;

    /// Calls it to perform an action that it provides.
    fn act(
        &self,
        serving: ServedCall,
        call: ActionCall,
    ) -> BoxFuture<'_, Result<ActionAnswer, Failure>>;
}

/// The host of one plugin, as seen by its instances. Each call is checked against the plugin's grants.
pub trait HostCalls: Send + Sync + 'static {
    /// Carries out a request from an instance. An error ends the instance.
    fn ask(
        &self,
        instance: InstanceId,
        serving: &ServedCall,
        call: CapabilityCall,
    ) -> BoxFuture<'static, Result<CapabilityAnswer, CallRefusal>>;

    /// Releases the object with this handle that an instance holds.
    fn release(&self, instance: InstanceId, handle: Handle);

    /// Releases everything that an instance holds, after the instance is gone.
    fn end(&self, instance: InstanceId);

    /// Accepts an entry for the log.
    fn log(&self, entry: LogEntry);
}

/// Why the host does not carry out a request of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum CallRefusal {
    /// The plugin may not make this call.
    #[error("{0}")]
    NotAllowed(String),
    /// The plugin's calls to the host have reached a limit.
    #[error("{0}")]
    Busy(Bound),
}

impl From<String> for CallRefusal {
    fn from(why: String) -> CallRefusal {
        CallRefusal::NotAllowed(why)
    }
}

/// An instance of a plugin. No number is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct InstanceId(pub u64);

/// A request on its way to a plugin.
pub struct GuestRequest {
    /// Everything but its body.
    pub head: RequestHead,
    /// Its body; no more of it is received than the plugin reads.
    pub body: RequestBody,
}

/// A request without its body (`wit/types.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestHead {
    /// In upper case.
    pub method: String,
    /// As received, without the query.
    pub path: String,
    /// The pattern that was matched.
    pub route: String,
    /// The values of the pattern's names.
    pub params: Vec<(String, String)>,
    /// Without the question mark and the key.
    pub query: String,
    /// Without the key.
    pub headers: Vec<(String, Vec<u8>)>,
}

/// A request's body.
pub enum RequestBody {
    /// No body.
    Empty,
    /// A small body.
    Whole(Vec<u8>),
    /// A large body, as it arrives.
    Stream(RequestStream),
}

/// The bytes of a request's body as they arrive.
pub type RequestStream = Pin<Box<dyn http_body::Body<Data = Bytes, Error = String> + Send>>;

/// The result of a call.
pub enum Outcome {
    /// The plugin's answer.
    Answer(GuestAnswer),
    /// The `error` that the plugin returned.
    Error(GuestError),
}

/// An answer.
pub struct GuestAnswer {
    /// Status and headers.
    pub head: AnswerHead,
    /// The body.
    pub body: AnswerBody,
}

/// The body of an answer.
pub enum AnswerBody {
    /// As bytes; may be empty.
    Whole(Vec<u8>),
    /// In pieces as the plugin produces them, or the part of the request's body that it did not read.
    Stream(AnswerStream),
    /// The host's own journal, which the plugin had opened.
    Journal(JournalAnswer),
}

/// The bytes of an answer as they arrive.
pub type AnswerStream = Pin<Box<dyn http_body::Body<Data = Bytes, Error = Failure> + Send>>;

/// A stream of the host's journal that a plugin returned: its bytes bypass the plugin.
pub struct JournalAnswer {
    /// The instance that owns it.
    pub instance: InstanceId,
    /// The handle for reading it.
    pub reader: Handle,
    /// How many bytes the plugin has already read.
    pub used: u64,
    /// The reader belongs to the instance until this is dropped.
    pub guard: Box<dyn Any + Send>,
}

/// An error that a plugin returned (`wit/types.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestError {
    /// Any number.
    pub status: u16,
    /// A short word.
    pub code: String,
    /// For the caller.
    pub message: String,
}

/// An entry for the log from an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogEntry {
    /// A line.
    Line(LogLevel, String),
    /// This many lines of one call were not written.
    Lost(u32),
}

/// The severity of a line (`wit/log.wit`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the log")]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
}
