//! Live updates of open pages: their parts are rendered again, and sent if they have changed.
//!
//! ```text
//! GET <page>/live ── first check: every part
//!                 └─ something was written (here, or perhaps elsewhere) ─ check again ─ parts that differ
//! ```
//!
//! A page has one connection. It is rendered again at most once a second, however much is written, and less often if
//! rendering takes long. At most [`AT_A_TIME`](super::live_pages::AT_A_TIME) pages of the program are rendered
//! concurrently: if many are open, each waits for its turn and then pauses in proportion, so pages never block devices
//! from the database.

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
use super::page_error::{PageError, PageResult};
use super::session_user::SessionUser;
use super::state::{DashboardState, Routes};

/// The minimum time between two updates.
const REST: Duration = Duration::from_secs(1);
/// The maximum time between two updates: other replicas do not announce everything that they write.
const RENDER_INTERVAL: Duration = Duration::from_secs(5);
/// The pause after an update as a multiple of its duration, up to [`RENDER_INTERVAL`].
const SPARED: u32 = 9;
/// The interval of keep-alive messages.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A part of a page that is updated live. It is placed in the page ([`LiveFragment::placed`]), and sent to the open
/// page when it has changed. Its name is unique in its page, and neither `left` nor one that browsers use (`open`,
/// `error`, `message`).
#[derive(Debug, Clone)]
pub(crate) struct LiveFragment {
    pub(crate) name: &'static str,
    markup: Markup,
}

impl LiveFragment {
    pub(crate) fn new(name: &'static str, markup: Markup) -> Self {
        LiveFragment { name, markup }
    }

    /// Returns the part for its place in the page.
    pub(crate) fn placed(&self) -> Markup {
        html! { div id={ "part-" (self.name) } data-part=(self.name) { (self.markup) } }
    }
}

/// A page with live parts.
pub(crate) trait LivePage: Sized + Send + Sync + 'static {
    /// What its address contains: the row that it shows, or the terms of a search.
    type Address: FromRequestParts<DashboardState> + Clone + Send + Sync + 'static;
    /// A collection with as many parts as the page has.
    type Parts: IntoIterator<Item = LiveFragment> + Send;

    /// Reads what the page shows.
    ///
    /// # Errors
    /// 404 if the user does not see it (any more).
    fn load(
        user: &SessionUser,
        address: Self::Address,
    ) -> impl Future<Output = PageResult<Self>> + Send;

    /// Returns the parts, as the user sees them at this moment.
    ///
    /// # Errors
    /// If the API refuses what they show, or the database fails.
    fn parts(&self, user: &SessionUser) -> impl Future<Output = PageResult<Self::Parts>> + Send;

    /// Returns the whole page, with the parts in their places.
    ///
    /// # Errors
    /// As [`LivePage::parts`].
    fn page(
        &self,
        user: &SessionUser,
        parts: Self::Parts,
    ) -> impl Future<Output = PageResult<Page>> + Send;

    /// Returns events of other kinds, which end together with the page's own.
    ///
    /// # Errors
    /// If the database fails.
    fn more_events(
        &self,
        _user: &SessionUser,
    ) -> impl Future<Output = PageResult<BoxStream<'static, Event>>> + Send {
        async { Ok(stream::empty().boxed()) }
    }
}

/// Routes a page at its address, and its events below that.
pub(crate) fn live_page<P: LivePage>(address: &str) -> Routes {
    Routes::new()
        .route(address, get(show::<P>))
        .route(&format!("{address}/live"), get(stream_fragments::<P>))
}

/// `GET <page>`
pub(crate) async fn show<P: LivePage>(
    user: SessionUser,
    address: P::Address,
) -> PageResult<Markup> {
    let page = P::load(&user, address).await?;
    let parts = page.parts(&user).await?;
    Ok(page.page(&user, parts).await?.markup(&user))
}

/// `GET <page>/live`: an event has the name of its part. `left` tells the script to reload the page: the session has
/// ended, or what the page shows no longer exists.
async fn stream_fragments<P: LivePage>(
    State(state): State<DashboardState>,
    user: SessionUser,
    address: P::Address,
) -> PageResult {
    // Before the first rendering, so that no change is missed.
    let written = user.cloud.database.written();
    let notifications = user.cloud.bus.subscribe();
    let page = P::load(&user, address.clone()).await?;
    let over = CancellationToken::new();
    let more = page.more_events(&user).await?;
    let more = more.take_until(over.clone().cancelled_owned());
    let over = over.drop_guard();
    let first = page.parts(&user).await?;
    let mut live = LiveStream::<P> {
        written,
        notifications,
        _place: state.live.enter(user.claims.id).map_err(PageError)?,
        pages: state.live,
        user,
        address,
        waiting: VecDeque::new(),
        sent: HashMap::new(),
        rest: Instant::now() + REST,
        over: false,
    };
    live.send(first);
    let events = stream::unfold((live, over), |(mut live, over)| async move {
        let stop = live.user.cloud.stop.clone();
        let event = stop.run_until_cancelled(live.next()).await??;
        Some((event, (live, over)))
    });
    let events = stream::select(events, more).map(Ok::<_, Infallible>);
    let alive = KeepAlive::new().interval(KEEP_ALIVE).text("");
    Ok(Sse::new(events).keep_alive(alive).into_response())
}

/// The stream of events for an open page.
struct LiveStream<P: LivePage> {
    pages: Arc<LivePages>,
    user: SessionUser,
    address: P::Address,
    /// Notifies of writes by this program,
    written: watch::Receiver<u64>,
    /// and of writes by others, as far as they announce them.
    notifications: Subscription,
    waiting: VecDeque<Event>,
    /// The last text that was sent of each part.
    sent: HashMap<&'static str, String>,
    /// No update happens before this time.
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
            let _ = timeout(RENDER_INTERVAL, async {
                tokio::select! {
                    _ = self.written.changed() => {}
                    _ = self.notifications.next() => {}
                }
            })
            .await;
            sleep(self.rest.saturating_duration_since(Instant::now())).await;
            let begun = Instant::now();
            let pages = self.pages.clone();
            // It fails only if the semaphore is closed, which never happens while the program runs.
            let turn = pages.turn().await;
            self.written.mark_unchanged();
            self.render().await;
            drop(turn);
            let spared = begun.elapsed() * SPARED;
            self.rest = Instant::now() + spared.clamp(REST, RENDER_INTERVAL);
        }
    }

    async fn render(&mut self) {
        match self.parts().await {
            Ok(Some(parts)) => self.send(parts),
            Ok(None) => self.leave(),
            Err(PageError(Refusal::Missing(_) | Refusal::Unauthorized)) => self.leave(),
            // A temporary failure: the next update may succeed.
            Err(PageError(error)) => {
                tracing::warn!(
                    user = self.user.claims.id,
                    ?error,
                    "failed to update an open page"
                );
            }
        }
    }

    /// Renders the parts; returns `None` once the session has ended.
    async fn parts(&mut self) -> PageResult<Option<P::Parts>> {
        if !self.user.still_there().await? {
            return Ok(None);
        }
        let page = P::load(&self.user, self.address.clone()).await?;
        page.parts(&self.user).await.map(Some)
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
