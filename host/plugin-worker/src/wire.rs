//! The messages, as plain data.

use std::os::fd::OwnedFd;

use confinement::Report;
use plugin_protocol::{
    ActionAnswer, ActionCall, Blueprint, CapabilityAnswer, CapabilityCall, ComponentFacts, Failure,
    GuestError, Handle, Identity, InstanceId, LogEntry, Origin, RequestHead,
};
use serde::{Deserialize, Serialize};

/// Programs of two versions do not understand each other: both are of one layout.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The longest message of a worker, in bytes: the head of an answer, a piece of one, something that an instance asks for.
pub(crate) const MOST_OF_WORKER: usize = 1 << 20;
/// The longest message of the host, in bytes: an answer of the cloud's is the longest.
pub(crate) const MOST_OF_HOST: usize = 64 << 20;
/// The longest piece of a body, in bytes.
pub(crate) const PIECE: usize = 64 << 10;

/// What the host says beside conversations.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Note {
    /// A conversation begins; its socket comes with it, and for code that is opened its file.
    Conversation {
        /// Its number.
        id: u64,
    },
    /// A conversation is given up, with the call that it is.
    Cancel {
        /// Which.
        conversation: u64,
    },
    /// Nobody calls this plugin any more.
    Unload {
        /// Which.
        plugin: u64,
    },
    /// Nobody makes plugins of this code any more.
    Forget {
        /// Which.
        code: u64,
    },
}

/// A note with what came with it.
pub(crate) type ReceivedNote = (Note, Vec<OwnedFd>);

/// What a conversation begins with.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    /// The first one. The socket of the host calls comes with it.
    Hello {
        version: String,
    },
    Ping,
    /// The memory of all instances, in bytes.
    Memory(u64),
    /// Opens code, whose file comes with it.
    Open {
        code: u64,
    },
    /// Makes a plugin of code, whose file comes with it.
    Load {
        plugin: u64,
        code: u64,
        blueprint: Blueprint,
    },
    Call {
        plugin: u64,
        call: u64,
        origin: Origin,
        /// Who the device is, for a plugin that asked for it before.
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

/// A request's body, as far as it comes with its head.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum BodyHead {
    Empty,
    Whole(Vec<u8>),
    /// In the pieces that follow.
    Stream,
}

/// What a conversation is answered with.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Hello {
        version: String,
        walls: Report,
    },
    Done,
    Opened(ComponentFacts),
    /// Code does not load, or the worker cannot work: why.
    Refused(String),
    Answer {
        status: u16,
        headers: Vec<(String, Vec<u8>)>,
        body: AnswerKind,
    },
    Error(GuestError),
    Acted(ActionAnswer),
    Failed(Failure),
}

/// How the body of an answer comes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum AnswerKind {
    Empty,
    /// In the pieces that follow, all of which are there.
    Whole,
    /// In the pieces that follow, as they are made.
    Stream,
    Journal {
        instance: InstanceId,
        reader: Handle,
        used: u64,
    },
}

/// What a worker says on the socket of the host calls.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HostCall {
    Ask {
        /// The answer has the same.
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

/// What the host answers there.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostAnswer {
    pub(crate) id: u64,
    pub(crate) answer: Result<CapabilityAnswer, String>,
}
