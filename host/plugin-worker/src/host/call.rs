//! One call of a plugin in a worker.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{BoxFuture, poll_fn};
use http_body::{Body, Frame as BodyFrame};
use plugin_protocol::text::{LONGEST, cut, one_line};
use plugin_protocol::{
    ActionAnswer, ActionCall, AnswerBody, AnswerHead, Failure, GuestAnswer, GuestError,
    GuestPlugin, GuestRequest, JournalAnswer, Outcome, RequestBody, RequestStream, ServedCall,
};
use tokio::task::JoinHandle;

use super::entry::PluginEntry;
use super::host_calls::instance_of;
use super::plugin::RemotePlugin;
use super::session::{OpenConversation, Session};
use crate::body::write_body;
use crate::frames::{Frame, FrameKind, decode};
use crate::socket::WriteHalf;
use crate::wire::{AnswerKind, BodyHead, Note, Question, Reply};

/// A call that is under way. Dropping it cancels it, and releases what its instance holds.
struct Call {
    entry: Arc<PluginEntry>,
    session: Arc<Session>,
    call: u64,
    /// The number of its conversation while it can be cancelled.
    conversation: Option<u64>,
    /// Writes the request's body.
    pump: Option<JoinHandle<()>>,
}

impl Call {
    fn begin(plugin: &RemotePlugin, session: &Arc<Session>, serving: &ServedCall) -> Call {
        plugin.entry.begin(serving.clone());
        Call {
            entry: Arc::clone(&plugin.entry),
            session: Arc::clone(session),
            call: serving.call,
            conversation: None,
            pump: None,
        }
    }

    /// Marks the call as done: the worker need not be notified any more, and if it has answered, the conversation can
    /// be used again.
    fn finish(&mut self, conversation: Option<OpenConversation>) {
        self.conversation = None;
        if let Some(conversation) = conversation {
            self.session.take_back(conversation);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(pump) = &self.pump {
            pump.abort();
        }
        if let Some(conversation) = self.conversation {
            self.session.note(Note::Cancel { conversation });
        }
        self.entry.end(self.call);
    }
}

impl GuestPlugin for RemotePlugin {
    fn call(
        &self,
        serving: ServedCall,
        request: GuestRequest,
    ) -> BoxFuture<'_, Result<Outcome, Failure>> {
        call(self, serving, request).boxed()
    }

    fn act(
        &self,
        serving: ServedCall,
        action: ActionCall,
    ) -> BoxFuture<'_, Result<ActionAnswer, Failure>> {
        act(self, serving, action).boxed()
    }
}

async fn call(
    plugin: &RemotePlugin,
    serving: ServedCall,
    GuestRequest { head, body }: GuestRequest,
) -> Result<Outcome, Failure> {
    let (body, stream) = match body {
        RequestBody::Empty => (BodyHead::Empty, None),
        RequestBody::Whole(bytes) => (BodyHead::Whole(bytes), None),
        RequestBody::Stream(stream) => (BodyHead::Stream, Some(stream)),
    };
    let question = Question::Call {
        plugin: plugin.id(),
        call: serving.call,
        origin: serving.origin.clone(),
        identity: plugin.entry.identity(&serving),
        head,
        body,
    };
    let (mut call, conversation, reply) = ask(plugin, &serving, &question, stream).await?;
    let session = Arc::clone(&call.session);
    let (status, headers, kind) = match reply {
        Reply::Answer {
            status,
            headers,
            body,
        } => (status, headers, body),
        reply => {
            let outcome = match reply {
                Reply::Error(error) => Ok(Outcome::Error(GuestError {
                    message: cut(error.message),
                    ..error
                })),
                Reply::Failed(failure) => Err(bounded(failure)),
                _ => return Err(no_answer()),
            };
            call.finish(Some(conversation));
            return outcome;
        }
    };
    let head = AnswerHead::new(status, &headers)?;
    let mut pieces = AnswerPieces {
        conversation: Some(conversation),
        call,
    };
    let body = match kind {
        AnswerKind::Empty => {
            pieces.end(true);
            AnswerBody::Whole(Vec::new())
        }
        AnswerKind::Whole => {
            let bytes = pieces.whole(plugin.most_of_body()).await?;
            AnswerBody::Whole(bytes)
        }
        AnswerKind::Stream => AnswerBody::Stream(Box::pin(pieces)),
        AnswerKind::Journal {
            instance,
            reader,
            used,
        } => AnswerBody::Journal(JournalAnswer {
            instance: instance_of(session.generation, instance),
            reader,
            used,
            guard: Box::new(pieces),
        }),
    };
    Ok(Outcome::Answer(GuestAnswer { head, body }))
}

async fn act(
    plugin: &RemotePlugin,
    serving: ServedCall,
    action: ActionCall,
) -> Result<ActionAnswer, Failure> {
    let question = Question::Act {
        plugin: plugin.id(),
        call: serving.call,
        origin: serving.origin.clone(),
        action,
    };
    let (mut call, conversation, reply) = ask(plugin, &serving, &question, None).await?;
    let outcome = match reply {
        Reply::Acted(answer) => Ok(answer),
        Reply::Failed(failure) => Err(bounded(failure)),
        _ => return Err(no_answer()),
    };
    call.finish(Some(conversation));
    outcome
}

/// Begins a call, and reads the head of its answer. If a process ended before it had read the question, the call has
/// not begun: it is sent to the next process, once.
async fn ask(
    plugin: &RemotePlugin,
    serving: &ServedCall,
    question: &Question,
    mut body: Option<RequestStream>,
) -> Result<(Call, OpenConversation, Reply), Failure> {
    let mut ended: Option<Arc<Session>> = None;
    loop {
        let leased = plugin.session(ended.as_ref()).await?;
        let session = &leased.0;
        let mut call = Call::begin(plugin, session, serving);
        let exchange = async {
            let mut conversation = session.converse(question, None).await?;
            call.conversation = Some(conversation.socket.id);
            if let Some(body) = body.take()
                && let Some(write) = conversation.socket.write.take()
            {
                call.pump = Some(tokio::spawn(pump(body, write)));
            }
            let reply = conversation.socket.reader.message::<Reply>().await?;
            io::Result::Ok((conversation, reply))
        };
        match exchange.await {
            Ok((conversation, reply)) => {
                let reply = reply.ok_or(Failure::Lost)?;
                return Ok((call, conversation, reply));
            }
            // If the question has a body, it is unknown how much of it was read.
            Err(error) if is_gone(&error) && ended.is_none() && call.pump.is_none() => {
                ended = Some(Arc::clone(session));
            }
            Err(error) => return Err(lost(error)),
        }
    }
}

/// Returns whether the other end was closed before everything was read: the kernel then reports that it was reset.
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

/// Converts the error of a worker that has ended, or that sends nonsense.
fn lost(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::InvalidData => {
            Failure::BadAnswer(one_line(&format!("its worker reported {error}"), LONGEST))
        }
        _ => Failure::Lost,
    }
}

fn no_answer() -> Failure {
    Failure::BadAnswer("its worker sent an unexpected answer".to_owned())
}

/// Returns a worker's account of a failure, cut to the length that is passed on.
fn bounded(failure: Failure) -> Failure {
    let line = |text: String| one_line(&text, LONGEST);
    match failure {
        Failure::Trap {
            what,
            trace,
            account,
        } => Failure::Trap {
            what: line(what),
            trace: line(trace),
            account: account.map(line),
        },
        Failure::BadAnswer(what) => Failure::BadAnswer(line(what)),
        Failure::NotReady(what) => Failure::NotReady(line(what)),
        Failure::BodyIncomplete(what) => Failure::BodyIncomplete(line(what)),
        others => others,
    }
}

/// Writes a request's body until it ends, or is no longer read.
async fn pump(stream: RequestStream, mut write: WriteHalf) {
    // If the socket just ends, the worker knows that the body is incomplete.
    if let Ok(Some(_)) = write_body(&mut write, stream).await {
        write.finish();
    }
}

/// The body of an answer, as it arrives from the worker.
struct AnswerPieces {
    /// `None` once it has ended.
    conversation: Option<OpenConversation>,
    call: Call,
}

impl AnswerPieces {
    /// Marks the end of the answer.
    fn end(&mut self, is_whole: bool) {
        let conversation = self.conversation.take();
        self.call.finish(conversation.filter(|_| is_whole));
    }

    /// Reads all of it, at most `most` bytes.
    async fn whole(mut self, most: usize) -> Result<Vec<u8>, Failure> {
        let mut whole = Vec::new();
        let mut this = Pin::new(&mut self);
        while let Some(piece) = poll_fn(|context| this.as_mut().poll_piece(context)).await {
            let piece = piece?;
            if whole.len() + piece.len() > most {
                return Err(Failure::BadAnswer(format!("more than its {most} bytes")));
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    fn poll_piece(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Failure>>> {
        let Some(conversation) = &mut self.conversation else {
            return Poll::Ready(None);
        };
        let end = match ready!(conversation.socket.reader.poll_next(context)) {
            Ok(Some(Frame(FrameKind::Piece, content))) => return Poll::Ready(Some(Ok(content))),
            Ok(Some(Frame(FrameKind::End, _))) => None,
            Ok(Some(Frame(FrameKind::Broken, content))) => {
                Some(decode::<Failure>(&content).map_or_else(lost, bounded))
            }
            Ok(Some(_)) => Some(no_answer()),
            Ok(None) => Some(Failure::Lost),
            Err(error) => Some(lost(error)),
        };
        self.end(end.is_none());
        Poll::Ready(end.map(Err))
    }
}

impl Body for AnswerPieces {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, Failure>>> {
        let piece = ready!(self.poll_piece(context));
        Poll::Ready(piece.map(|piece| piece.map(BodyFrame::data)))
    }
}
