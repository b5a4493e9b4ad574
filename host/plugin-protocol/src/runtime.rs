//! Where plugins run, as their host has it. The two know each other by these traits alone, so that a runtime may be in
//! another process: nothing that it says is believed further than what the plugin was granted whose word it is.

use std::any::Any;
use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{
    ActionAnswer, ActionCall, AnswerHead, Blueprint, CapabilityAnswer, CapabilityCall,
    ComponentFacts, Failure, Handle, ServedCall,
};

/// Runs plugins.
pub trait GuestRuntime: Send + Sync + 'static {
    /// Opens the compiled code in this file, which is as it came from the compiler.
    ///
    /// An error is for code that does not load: of another version, or for another processor.
    fn open(&self, file: File) -> BoxFuture<'static, Result<Arc<dyn GuestCode>, String>>;

    /// How many instances can be there at a time.
    fn slots(&self) -> usize;

    /// From now on the instances of all plugins together have so much memory, in bytes.
    fn set_memory(&self, bytes: usize);

    /// What keeps it from running plugins, in sentences.
    fn problems(&self) -> Vec<String>;
}

/// The native code of a component.
pub trait GuestCode: Send + Sync + 'static {
    /// What the component is.
    fn facts(&self) -> &ComponentFacts;

    /// A plugin of this code, whose instances reach `host`.
    fn plugin(&self, blueprint: Blueprint, host: Arc<dyn HostCalls>) -> Arc<dyn GuestPlugin>;
}

/// A plugin that can be called. Dropping the future of a call, or the stream of its answer, ends the call with all
/// that its instance holds. No two calls share an instance.
pub trait GuestPlugin: Send + Sync + 'static {
    /// Has it answer a request. How long that may take is the caller's matter.
    fn call(
        &self,
        serving: ServedCall,
        request: GuestRequest,
    ) -> BoxFuture<'_, Result<Outcome, Failure>>;

    /// Has it do what it provides.
    fn act(
        &self,
        serving: ServedCall,
        call: ActionCall,
    ) -> BoxFuture<'_, Result<ActionAnswer, Failure>>;
}

/// The host of one plugin, as its instances have it. Each call is checked against the plugin's grants.
pub trait HostCalls: Send + Sync + 'static {
    /// Does what an instance asks for. An error is for a call that is not the plugin's to make: the instance ends.
    fn ask(
        &self,
        instance: InstanceId,
        serving: &ServedCall,
        call: CapabilityCall,
    ) -> BoxFuture<'static, Result<CapabilityAnswer, String>>;

    /// Lets go of what an instance holds by this handle.
    fn release(&self, instance: InstanceId, handle: Handle);

    /// Lets go of all that an instance holds, which is gone.
    fn end(&self, instance: InstanceId);

    /// Takes something for the log.
    fn log(&self, entry: LogEntry);
}

/// An instance of a plugin. No number is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct InstanceId(pub u64);

/// A request on its way to a plugin.
pub struct GuestRequest {
    /// All but its body.
    pub head: RequestHead,
    /// Its body, of which no more comes than the plugin takes.
    pub body: RequestBody,
}

/// A request without its body (`wit/types.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestHead {
    /// In upper case.
    pub method: String,
    /// As it came, without the query.
    pub path: String,
    /// The pattern that was matched.
    pub route: String,
    /// What the pattern's names stand for.
    pub params: Vec<(String, String)>,
    /// Without the question mark and the key.
    pub query: String,
    /// Without the key.
    pub headers: Vec<(String, Vec<u8>)>,
}

/// A request's body.
pub enum RequestBody {
    /// There is none.
    Empty,
    /// A small one.
    Whole(Vec<u8>),
    /// A large one, as it comes.
    Stream(RequestStream),
}

/// The bytes of a request's body as they come.
pub type RequestStream = Pin<Box<dyn http_body::Body<Data = Bytes, Error = String> + Send>>;

/// What came of a call.
pub enum Outcome {
    /// The plugin's answer.
    Answer(GuestAnswer),
    /// The plugin's own `error`.
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
    /// In pieces as the plugin makes them, or what it did not read of the request's body.
    Stream(AnswerStream),
    /// The host's own journal, which the plugin was given.
    Journal(JournalAnswer),
}

/// The bytes of an answer as they come.
pub type AnswerStream = Pin<Box<dyn http_body::Body<Data = Bytes, Error = Failure> + Send>>;

/// A stream of the host's journal that a plugin gave back: its bytes pass outside the plugin.
pub struct JournalAnswer {
    /// The instance whose it is.
    pub instance: InstanceId,
    /// What it was read by.
    pub reader: Handle,
    /// How many bytes of it the plugin has read.
    pub used: u64,
    /// The reader is the instance's until this is dropped.
    pub guard: Box<dyn Any + Send>,
}

/// An error that a plugin answered (`wit/types.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestError {
    /// Any number.
    pub status: u16,
    /// A short word.
    pub code: String,
    /// For the caller.
    pub message: String,
}

/// What an instance says to the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogEntry {
    /// A line.
    Line(LogLevel, String),
    /// So many lines of one call were not written.
    Lost(u32),
}

/// How much a line matters (`wit/log.wit`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the log")]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
}
