//! The host's questions, and their answers.

use std::io::Result;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame as BodyFrame};
use plugin_protocol::{
    AnswerBody, Blueprint, Failure, GuestAnswer, GuestCode, GuestPlugin, GuestRequest, Origin,
    Outcome, RequestBody, RequestHead, ServedCall,
};

use super::Worker;
use crate::body::write_body;
use crate::frames::{Frame, FrameKind, FrameReader, Frames};
use crate::socket::{self, ReadHalf, WriteHalf};
use crate::wire::{AnswerKind, BodyHead, MOST_OF_HOST, MOST_OF_WORKER, Question, Reply};

/// The socket of a conversation.
pub(super) struct Conversation {
    pub(super) reader: FrameReader<ReadHalf>,
    pub(super) write: WriteHalf,
}

impl Conversation {
    /// Creates a conversation on the socket whose descriptor came with a note.
    pub(super) fn over(descriptor: Option<OwnedFd>) -> Result<Conversation> {
        let (read, write) = socket::halves(descriptor.ok_or_else(socket::missing)?)?;
        Ok(Conversation {
            reader: FrameReader::new(read, MOST_OF_HOST),
            write,
        })
    }
}

/// Encodes the reply, or if it is longer than the host accepts, an error that says so.
fn bounded(reply: &Reply) -> Result<Frames> {
    let what = match Frames::message(reply) {
        Ok(frames) if frames.bytes().len() <= MOST_OF_WORKER => return Ok(frames),
        Ok(frames) => format!(
            "it has {} bytes, more than {MOST_OF_WORKER}",
            frames.bytes().len()
        ),
        Err(error) => error.to_string(),
    };
    Frames::message(&Reply::Failed(Failure::BadAnswer(what)))
}

/// Returns a call of the host. What it uses is not shown: the host is in another process.
fn served(origin: Origin, call: u64) -> ServedCall {
    ServedCall {
        origin,
        call,
        usage: None,
    }
}

async fn write_reply(write: &mut WriteHalf, reply: &Reply) -> Result<()> {
    write.write_all(bounded(reply)?.bytes()).await
}

impl Worker {
    /// Answers one question after another until there are no more.
    pub(super) async fn converse(
        &self,
        mut conversation: Conversation,
        mut file: Option<OwnedFd>,
    ) -> Result<()> {
        while let Some(question) = conversation.reader.message::<Question>().await? {
            match self.answer(conversation, question, file.take()).await? {
                Some(again) => conversation = again,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Answers a question; returns the conversation if it can continue.
    async fn answer(
        &self,
        mut conversation: Conversation,
        question: Question,
        file: Option<OwnedFd>,
    ) -> Result<Option<Conversation>> {
        let reply = match question {
            Question::Hello { .. } => Reply::Refused("the greeting can only come first".to_owned()),
            Question::Ping => Reply::Done,
            Question::Memory(bytes) => {
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                self.runtime.set_memory(bytes);
                Reply::Done
            }
            Question::Open { code } => match self.open(code, file).await {
                Ok(code) => Reply::Opened(code.facts().clone()),
                Err(reason) => Reply::Refused(reason),
            },
            Question::Load {
                plugin,
                code,
                blueprint,
            } => match self.load(plugin, code, blueprint, file).await {
                Ok(()) => Reply::Done,
                Err(reason) => Reply::Refused(reason),
            },
            Question::Act {
                plugin,
                call,
                origin,
                action,
            } => match self.plugin(plugin) {
                Ok(plugin) => match plugin.act(served(origin, call), action).await {
                    Ok(answer) => Reply::Acted(answer),
                    Err(failure) => Reply::Failed(failure),
                },
                Err(failure) => Reply::Failed(failure),
            },
            Question::Call {
                plugin,
                call,
                origin,
                identity,
                head,
                body,
            } => {
                let _identity = identity.map(|identity| self.host.keep_identity(call, identity));
                let serving = served(origin, call);
                return self.call(conversation, plugin, serving, (head, body)).await;
            }
        };
        write_reply(&mut conversation.write, &reply).await?;
        Ok(Some(conversation))
    }

    fn plugin(&self, plugin: u64) -> std::result::Result<Arc<dyn GuestPlugin>, Failure> {
        let plugin = self.plugins.lock().get(&plugin).cloned();
        plugin.ok_or_else(|| Failure::NotReady("it is not loaded".to_owned()))
    }

    async fn open(
        &self,
        code: u64,
        file: Option<OwnedFd>,
    ) -> std::result::Result<Arc<dyn GuestCode>, String> {
        if let Some(code) = self.code(code) {
            return Ok(code);
        }
        let file = file.ok_or_else(|| "its file did not come with it".to_owned())?;
        let opened = self.runtime.open(file.into()).await?;
        self.codes.lock().insert(code, Arc::clone(&opened));
        Ok(opened)
    }

    async fn load(
        &self,
        plugin: u64,
        code: u64,
        blueprint: Blueprint,
        file: Option<OwnedFd>,
    ) -> std::result::Result<(), String> {
        let code = self.open(code, file).await?;
        let loaded = code.plugin(blueprint, self.host.for_plugin(plugin));
        self.plugins.lock().insert(plugin, loaded);
        Ok(())
    }

    async fn call(
        &self,
        conversation: Conversation,
        plugin: u64,
        serving: ServedCall,
        (head, body): (RequestHead, BodyHead),
    ) -> Result<Option<Conversation>> {
        let Conversation { reader, mut write } = conversation;
        // Kept open until the answer is written: an end that is closed counts as gone.
        let (body, reader) = match body {
            BodyHead::Empty => (RequestBody::Empty, Some(reader)),
            BodyHead::Whole(bytes) => (RequestBody::Whole(bytes), Some(reader)),
            BodyHead::Stream => {
                let pieces = RequestPieces {
                    reader: Some(reader),
                };
                (RequestBody::Stream(Box::pin(pieces)), None)
            }
        };
        let called = match self.plugin(plugin) {
            Ok(plugin) => plugin.call(serving, GuestRequest { head, body }).await,
            Err(failure) => Err(failure),
        };
        match called {
            Ok(Outcome::Answer(answer)) => write_answer(&mut write, answer).await?,
            Ok(Outcome::Error(error)) => write_reply(&mut write, &Reply::Error(error)).await?,
            Err(failure) => write_reply(&mut write, &Reply::Failed(failure)).await?,
        }
        // More of a body in pieces may still arrive.
        Ok(reader.map(|reader| Conversation { reader, write }))
    }
}

/// Writes an answer with its body.
async fn write_answer(write: &mut WriteHalf, answer: GuestAnswer) -> Result<()> {
    let GuestAnswer { head, body } = answer;
    let headers = head.headers.iter();
    let headers = headers.map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().into()));
    let reply = |body| Reply::Answer {
        status: head.status.as_u16(),
        headers: headers.collect(),
        body,
    };
    match body {
        AnswerBody::Whole(bytes) if bytes.is_empty() => {
            write_reply(write, &reply(AnswerKind::Empty)).await
        }
        AnswerBody::Whole(bytes) => {
            let mut frames = bounded(&reply(AnswerKind::Whole))?;
            frames.add_body(&bytes);
            frames.add_end();
            drop(bytes);
            write.write_all(frames.bytes()).await
        }
        AnswerBody::Stream(stream) => {
            write_reply(write, &reply(AnswerKind::Stream)).await?;
            match write_body(write, stream).await? {
                Some(failure) => write.write_all(Frames::broken(&failure)?.bytes()).await,
                None => Ok(()),
            }
        }
        AnswerBody::Journal(journal) => {
            let kind = AnswerKind::Journal {
                instance: journal.instance,
                reader: journal.reader,
                used: journal.used,
            };
            write_reply(write, &reply(kind)).await?;
            // The reader belongs to the instance until the host has taken it and cancels the call.
            let _guard = journal.guard;
            std::future::pending().await
        }
    }
}

/// The pieces of a request's body, as they arrive from the host.
struct RequestPieces {
    /// `None` once they have ended.
    reader: Option<FrameReader<ReadHalf>>,
}

impl Body for RequestPieces {
    type Data = Bytes;
    type Error = String;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<BodyFrame<Bytes>, String>>> {
        let Some(reader) = &mut self.reader else {
            return Poll::Ready(None);
        };
        let reason = match ready!(reader.poll_next(context)) {
            Ok(Some(Frame(FrameKind::Piece, content))) => {
                return Poll::Ready(Some(Ok(BodyFrame::data(content))));
            }
            Ok(Some(Frame(FrameKind::End, _))) => None,
            Ok(_) => Some("the connection ended before all of it arrived".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        self.reader = None;
        Poll::Ready(reason.map(Err))
    }
}
