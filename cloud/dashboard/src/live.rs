//! Open pages follow what happens: parts of them are made again, and sent where they have become different.
//!
//! ```text
//! GET <page>/live ── first look: every part
//!                 └─ something was written (here, or perhaps elsewhere) ─ look again ─ parts that differ
//! ```
//!
//! A page has one connection. It looks again once a second at most, however much is written, and less often where
//! looking takes long. All pages of the program together look at as much as
//! [`AT_A_TIME`](super::live_pages::AT_A_TIME) at a time: where many are open, each waits for its turn and then rests
//! in proportion, so that pages never take the database from devices.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, State};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::get;
use cloud_core::answer::Refusal;
use cloud_core::bus::Subscription;
use futures::stream::BoxStream;
use futures::{StreamExt as _, stream};
use maud::{Markup, html};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::live_pages::{LivePages, StreamSlot};
use super::page::Page;
use super::problem::{PageError, PageResult};
use super::state::{DashboardState, Routes};
use super::visitor::SessionUser;

/// Between two looks at least.
const REST: Duration = Duration::from_secs(1);
/// Between two looks at most: other replicas do not tell of all that they write.
const LOOK: Duration = Duration::from_secs(5);
/// So many times as long as a look took is nothing looked at, up to [`LOOK`].
const SPARED: u32 = 9;
/// Between signs of life.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A part of a page that follows what happens. It stands there ([`LiveFragment::placed`]), and goes to the open page
/// when it has become different. Its name is unique in its page, and neither `left` nor one that browsers use
/// (`open`, `error`, `message`).
#[derive(Debug, Clone)]
pub(crate) struct LiveFragment {
    pub(crate) name: &'static str,
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

/// A page with parts that follow what happens.
pub(crate) trait LivePage: Sized + Send + Sync + 'static {
    /// What its address says: of which row it is, or what is searched for.
    type Address: FromRequestParts<DashboardState> + Clone + Send + Sync + 'static;
    /// As many parts as the page has.
    type Parts: IntoIterator<Item = LiveFragment> + Send;

    /// Reads what the page is of.
    ///
    /// # Errors
    /// 404 where the visitor does not see it (any more).
    fn load(
        visitor: &SessionUser,
        address: Self::Address,
    ) -> impl Future<Output = PageResult<Self>> + Send;

    /// The parts, as the visitor sees them at this moment.
    ///
    /// # Errors
    /// Where the API refuses what they show, or the database fails.
    fn parts(&self, visitor: &SessionUser) -> impl Future<Output = PageResult<Self::Parts>> + Send;

    /// The whole page, with the parts in their places.
    ///
    /// # Errors
    /// As [`LivePage::parts`].
    fn page(
        &self,
        visitor: &SessionUser,
        parts: Self::Parts,
    ) -> impl Future<Output = PageResult<Page>> + Send;

    /// Events of other kinds, which end with the page's own.
    ///
    /// # Errors
    /// Where the database fails.
    fn more_events(
        &self,
        _visitor: &SessionUser,
    ) -> impl Future<Output = PageResult<BoxStream<'static, Event>>> + Send {
        async { Ok(stream::empty().boxed()) }
    }
}

/// A page at its address, and its events below that.
pub(crate) fn live_page<P: LivePage>(address: &str) -> Routes {
    Routes::new()
        .route(address, get(show::<P>))
        .route(&format!("{address}/live"), get(follow::<P>))
}

/// `GET <page>`
pub(crate) async fn show<P: LivePage>(
    visitor: SessionUser,
    address: P::Address,
) -> PageResult<Markup> {
    let page = P::load(&visitor, address).await?;
    let parts = page.parts(&visitor).await?;
    Ok(page.page(&visitor, parts).await?.markup(&visitor))
}

/// `GET <page>/live`: an event is named for its part. `left` says that the page is to be loaded anew: the session
/// has ended, or what it shows is no more.
async fn follow<P: LivePage>(
    State(state): State<DashboardState>,
    visitor: SessionUser,
    address: P::Address,
) -> PageResult {
    // Before the first look, so that nothing is missed that is written meanwhile.
    let written = visitor.cloud.database.written();
    let news = visitor.cloud.bus.subscribe();
    let page = P::load(&visitor, address.clone()).await?;
    let over = CancellationToken::new();
    let more = page.more_events(&visitor).await?;
    let more = more.take_until(over.clone().cancelled_owned());
    let over = over.drop_guard();
    let first = page.parts(&visitor).await?;
    let mut live = LiveStream::<P> {
        written,
        news,
        _place: state.live.enter(visitor.claims.id).map_err(PageError)?,
        pages: state.live,
        visitor,
        address,
        waiting: VecDeque::new(),
        sent: HashMap::new(),
        rest: Instant::now() + REST,
        over: false,
    };
    live.send(first);
    let events = stream::unfold((live, over), |(mut live, over)| async move {
        let stop = live.visitor.cloud.stop.clone();
        let event = stop.run_until_cancelled(live.next()).await??;
        Some((event, (live, over)))
    });
    let events = stream::select(events, more).map(Ok::<_, Infallible>);
    let alive = KeepAlive::new().interval(KEEP_ALIVE).text("");
    Ok(Sse::new(events).keep_alive(alive).into_response())
}

/// What an open page is sent.
struct LiveStream<P: LivePage> {
    pages: Arc<LivePages>,
    visitor: SessionUser,
    address: P::Address,
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

impl<P: LivePage> LiveStream<P> {
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
            let pages = self.pages.clone();
            // An error says that there are no more turns, which there are as long as the program runs.
            let turn = pages.turn().await;
            self.written.mark_unchanged();
            self.look().await;
            drop(turn);
            let spared = begun.elapsed() * SPARED;
            self.rest = Instant::now() + spared.clamp(REST, LOOK);
        }
    }

    async fn look(&mut self) {
        match self.parts().await {
            Ok(Some(parts)) => self.send(parts),
            Ok(None) => self.leave(),
            Err(PageError(Refusal::Missing(_) | Refusal::Unauthorized)) => self.leave(),
            // It is not the page's fault: the next look may do.
            Err(PageError(error)) => {
                tracing::warn!(
                    user = self.visitor.claims.id,
                    ?error,
                    "an open page cannot be followed"
                );
            }
        }
    }

    /// Nothing once the session has ended.
    async fn parts(&mut self) -> PageResult<Option<P::Parts>> {
        if !self.visitor.still_there().await? {
            return Ok(None);
        }
        let page = P::load(&self.visitor, self.address.clone()).await?;
        page.parts(&self.visitor).await.map(Some)
    }

    fn send(&mut self, parts: P::Parts) {
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
