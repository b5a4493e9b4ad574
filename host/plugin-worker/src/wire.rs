//! The messages, as plain data.

use std::os::fd::OwnedFd;

use confinement::Report;
use plugin_protocol::{
    ActionAnswer, ActionCall, Blueprint, CallRefusal, CapabilityAnswer, CapabilityCall,
    ComponentFacts, Failure, GuestError, Handle, Identity, InstanceId, LogEntry, Origin,
    RequestHead,
};
use serde::{Deserialize, Serialize};

/// Programs of two versions do not understand each other: they rely on the same layout.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The longest message from a worker, in bytes: the head of an answer, a piece of one, or a call of an instance.
pub(crate) const MOST_OF_WORKER: usize = 1 << 20;
/// The longest message from the host, in bytes: the longest are answers from the cloud.
pub(crate) const MOST_OF_HOST: usize = 64 << 20;
/// The longest piece of a body, in bytes.
pub(crate) const PIECE: usize = 64 << 10;

/// A message from the host outside conversations.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Note {
    /// A conversation begins; its socket comes with the note, together with the file if code is opened.
    Conversation {
        /// Its number.
        id: u64,
    },
    /// A conversation is cancelled, together with its call.
    Cancel {
        /// Its number.
        conversation: u64,
    },
    /// This plugin is not called any more.
    Unload {
        /// Its number.
        plugin: u64,
    },
    /// No more plugins are created from this code.
    Forget {
        /// Its number.
        code: u64,
    },
}

/// A note with its descriptors.
pub(crate) type ReceivedNote = (Note, Vec<OwnedFd>);

/// The question that begins a conversation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    /// The first one. The socket of the host calls comes with it.
    Hello {
        version: String,
    },
    Ping,
    /// The memory of all instances, in bytes.
    Memory(u64),
    /// Opens code; its file comes with the question.
    Open {
        code: u64,
    },
    /// Creates a plugin from code; its file comes with the question.
    Load {
        plugin: u64,
        code: u64,
        blueprint: Blueprint,
    },
    Call {
        plugin: u64,
        call: u64,
        origin: Origin,
        /// The device's identity, for a plugin that asked for it before.
        identity: Option<Identity>,
        head: RequestHead,
        body: BodyHead,
    },
    Act {
        plugin: u64,
        call: u64,
        origin: Origin,
        action: ActionCall,
    },
}

/// The part of a request's body that comes with its head.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum BodyHead {
    Empty,
    Whole(#[serde(with = "serde_bytes")] Vec<u8>),
    /// In the pieces that follow.
    Stream,
}

/// The answer in a conversation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Hello {
        version: String,
        walls: Report,
    },
    Done,
    Opened(ComponentFacts),
    /// Code could not be loaded, or the worker cannot work, for this reason.
    Refused(String),
    Answer {
        status: u16,
        #[serde(with = "plugin_protocol::bounded_list")]
        headers: Vec<(String, Vec<u8>)>,
        body: AnswerKind,
    },
    Error(GuestError),
    Acted(ActionAnswer),
    Failed(Failure),
}

/// How the body of an answer is sent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum AnswerKind {
    Empty,
    /// In the pieces that follow, all of which are available.
    Whole,
    /// In the pieces that follow, as they are produced.
    Stream,
    Journal {
        instance: InstanceId,
        reader: Handle,
        used: u64,
    },
}

/// A message from a worker on the socket for host calls.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HostCall {
    Ask {
        /// The answer has the same number.
        id: u64,
        plugin: u64,
        instance: InstanceId,
        /// The call that the instance serves.
        call: u64,
        what: CapabilityCall,
    },
    Release {
        plugin: u64,
        instance: InstanceId,
        handle: Handle,
    },
    End {
        plugin: u64,
        instance: InstanceId,
    },
    Log {
        plugin: u64,
        entry: LogEntry,
    },
}

/// The host's answer there.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostAnswer {
    pub(crate) id: u64,
    pub(crate) answer: Result<CapabilityAnswer, CallRefusal>,
}
