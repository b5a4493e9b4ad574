//! Open pages follow what happens: parts of them are made again, and sent where they have become different.
//!
//! ```text
//! GET <page>/live ── first look: every part
//!                 └─ something was written (here, or perhaps elsewhere) ─ look again ─ parts that differ
//! ```
//!
//! A page has one connection. It looks again once a second at most, however much is written, and less often where
//! looking takes long. All pages of the program together look at as much as [`AT_A_TIME`](super::live_pages::AT_A_TIME) at a time: where many are
//! open, each waits for its turn and then rests in proportion, so that pages never take the database from devices.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use cloud_core::answer::Refusal;
use cloud_core::bus::Subscription;
use futures::{Stream, StreamExt as _, stream};
use maud::{Markup, html};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::live_pages::StreamSlot;
use super::problem::{PageError, PageResult};
use super::state::DashboardState;
use super::visitor::SessionUser;

/// Between two looks at least.
const REST: Duration = Duration::from_secs(1);
/// Between two looks at most: other replicas do not tell of all that they write.
const LOOK: Duration = Duration::from_secs(5);
/// So many times as long as a look took is nothing looked at, up to [`LOOK`].
const SPARED: u32 = 9;
/// Between signs of life.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A part of a page that follows what happens. It stands there ([`LiveFragment::placed`]), and goes to the open page when
/// it has become different. Its name is unique in its page, and neither `left` nor one that browsers use
/// (`open`, `error`, `message`).
#[derive(Debug, Clone)]
pub(crate) struct LiveFragment {
    name: &'static str,
    markup: Markup,
}

impl LiveFragment {
    pub(crate) fn new(name: &'static str, markup: Markup) -> Self {
        LiveFragment { name, markup }
    }

    /// The part where it stands in its page.
    pub(crate) fn placed(&self) -> Markup {
        html! { div id={ "part-" (self.name) } data-part=(self.name) { (self.markup) } }
    }
}

/// What an open page is told.
struct LiveStream<F> {
    state: DashboardState,
    visitor: SessionUser,
    look: F,
    /// What this program writes,
    written: watch::Receiver<u64>,
    /// and what others tell of what they wrote.
    news: Subscription,
    waiting: VecDeque<Event>,
    /// What was sent last of each part.
    sent: HashMap<&'static str, String>,
    /// Until when nothing is looked at.
    rest: Instant,
    over: bool,
    _place: StreamSlot,
}

/// The events of a page: `look` makes its parts, as the visitor sees them at that moment.
///
/// An event is named for its part. `left` says that the page is to be loaded anew: the session has ended, or what
/// it shows is no more.
///
/// # Errors
/// Why the first look failed; where the user has too many pages open.
pub(crate) async fn stream_fragments<F, L>(
    state: DashboardState,
    visitor: SessionUser,
    look: F,
) -> PageResult
where
    F: Fn(SessionUser) -> L + Send + 'static,
    L: Future<Output = PageResult<Vec<LiveFragment>>> + Send,
{
    follow_with(state, visitor, look, stream::empty()).await
}

/// The same, and events of other kinds beside it. They end with the page's own.
///
/// # Errors
/// As [`stream_fragments`].
pub(crate) async fn follow_with<F, L>(
    state: DashboardState,
    visitor: SessionUser,
    look: F,
    more: impl Stream<Item = Event> + Send + 'static,
) -> PageResult
where
    F: Fn(SessionUser) -> L + Send + 'static,
    L: Future<Output = PageResult<Vec<LiveFragment>>> + Send,
{
    let over = CancellationToken::new();
    let more = more.take_until(over.clone().cancelled_owned());
    let over = over.drop_guard();
    let first = look(visitor.clone()).await?;
    let mut following = LiveStream {
        written: state.cloud.database.written(),
        news: state.cloud.bus.subscribe(),
        _place: state.live.enter(visitor.user).map_err(PageError)?,
        state,
        visitor,
        look,
        waiting: VecDeque::new(),
        sent: HashMap::new(),
        rest: Instant::now() + REST,
        over: false,
    };
    following.tell(first);
    let events = stream::unfold((following, over), |(mut following, over)| async move {
        let stop = following.state.cloud.stop.clone();
        let event = stop.run_until_cancelled(following.next()).await??;
        Some((event, (following, over)))
    });
    let events = stream::select(events, more).map(Ok::<_, Infallible>);
    let alive = KeepAlive::new().interval(KEEP_ALIVE).text("");
    Ok(Sse::new(events).keep_alive(alive).into_response())
}

impl<F, L> LiveStream<F>
where
    F: Fn(SessionUser) -> L,
    L: Future<Output = PageResult<Vec<LiveFragment>>>,
{
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            if self.over {
                return None;
            }
            let _ = timeout(LOOK, async {
                tokio::select! {
                    _ = self.written.changed() => {}
                    _ = self.news.next() => {}
                }
            })
            .await;
            sleep(self.rest.saturating_duration_since(Instant::now())).await;
            let begun = Instant::now();
            let live = self.state.live.clone();
            // An error says that there are no more turns, which there are as long as the program runs.
            let turn = live.turn().await;
            self.written.mark_unchanged();
            self.look().await;
            drop(turn);
            let spared = begun.elapsed() * SPARED;
            self.rest = Instant::now() + spared.clamp(REST, LOOK);
        }
    }

    async fn look(&mut self) {
        match self.parts().await {
            Ok(Some(parts)) => self.tell(parts),
            Ok(None) => self.leave(),
            Err(PageError(Refusal::Missing(_) | Refusal::Unauthorized)) => self.leave(),
            // It is not the page's fault: the next look may do.
            Err(PageError(error)) => tracing::warn!("an open page cannot be followed: {error:?}"),
        }
    }

    /// Nothing once the session has ended.
    async fn parts(&mut self) -> PageResult<Option<Vec<LiveFragment>>> {
        if !self.visitor.still_there().await? {
            return Ok(None);
        }
        let parts = (self.look)(self.visitor.clone());
        Ok(Some(parts.await?))
    }

    fn tell(&mut self, parts: Vec<LiveFragment>) {
        for part in parts {
            // A carriage return would end a line of an event.
            let text = part.markup.into_string().replace('\r', " ");
            if self.sent.get(part.name) != Some(&text) {
                let event = Event::default().event(part.name).data(&text);
                self.waiting.push_back(event);
                self.sent.insert(part.name, text);
            }
        }
    }

    fn leave(&mut self) {
        self.waiting
            .push_back(Event::default().event("left").data("-"));
        self.over = true;
    }
}
