//! The threads for lookups, and the callers that wait for the results.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::bounds;

/// The reason why a name has no address at present.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LookupError {
    /// The resolver failed.
    #[error("`{host}` has no address")]
    Failed {
        /// The name.
        host: String,
        /// The resolver's error.
        source: Arc<io::Error>,
    },
    /// The name servers do not answer, or other lookups wait for them already.
    #[error("the address of `{host}` was not found within {} s", within.as_secs())]
    Timeout {
        /// The name.
        host: String,
        /// How long the caller waited.
        within: Duration,
    },
    /// Too many names are already waiting.
    #[error(
        "`{host}` was not looked up: {} lookups are already waiting",
        bounds::WAITING
    )]
    Busy {
        /// The name.
        host: String,
    },
    /// The system cannot start a thread.
    #[error("`{host}` was not looked up")]
    Thread {
        /// The name.
        host: String,
        /// The system's error.
        source: Arc<io::Error>,
    },
}

type Answer = Result<Vec<SocketAddr>, LookupError>;

/// Queries the system for the addresses of a name, for as long as that takes.
type LookupFunction = Box<dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// The system's resolver. Cloning shares its threads.
#[derive(Clone)]
pub struct SystemNames {
    shared: Arc<ResolverState>,
}

struct ResolverState {
    look_up: LookupFunction,
    questions: Mutex<Questions>,
    within: Duration,
}

#[derive(Default)]
struct Questions {
    threads: usize,
    /// Names that no thread has taken yet.
    waiting: VecDeque<String>,
    /// Those and the names that are being queried, each with the channel for its answer: all callers with the same
    /// name wait for the same answer, so a silent name uses one thread, however many callers there are.
    open: HashMap<String, watch::Sender<Option<Answer>>>,
}

impl SystemNames {
    pub fn new(
        look_up: impl Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> SystemNames {
        SystemNames::within(bounds::WITHIN, look_up)
    }

    pub(crate) fn within(
        within: Duration,
        look_up: impl Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> SystemNames {
        SystemNames {
            shared: Arc::new(ResolverState {
                look_up: Box::new(look_up),
                questions: Mutex::default(),
                within,
            }),
        }
    }

    pub(crate) async fn look_up(&self, host: &str) -> Answer {
        let within = self.shared.within;
        let mut answer = self.answer(host)?;
        let outcome = tokio::time::timeout(within, answer.wait_for(Option::is_some)).await;
        match outcome {
            Ok(Ok(answer)) => answer.clone().unwrap_or_else(|| Err(given_up(host))),
            Ok(Err(_)) => Err(given_up(host)),
            Err(_) => Err(LookupError::Timeout {
                host: host.to_owned(),
                within,
            }),
        }
    }

    /// Returns the channel for the answer to this query, or to the same query if it is already pending.
    fn answer(&self, host: &str) -> Result<watch::Receiver<Option<Answer>>, LookupError> {
        let mut questions = self.shared.questions.lock();
        if let Some(answer) = questions.open.get(host) {
            return Ok(answer.subscribe());
        }
        questions.forget_abandoned();
        if questions.waiting.len() >= bounds::WAITING {
            return Err(LookupError::Busy {
                host: host.to_owned(),
            });
        }
        if questions.threads < bounds::THREADS {
            let shared = Arc::clone(&self.shared);
            let begun = thread::Builder::new()
                .name("names".to_owned())
                .stack_size(bounds::STACK)
                .spawn(move || shared.work());
            match begun {
                // The thread waits until we release the lock, and then finds this query.
                Ok(_) => questions.threads += 1,
                Err(error) if questions.threads == 0 => {
                    return Err(LookupError::Thread {
                        host: host.to_owned(),
                        source: Arc::new(error),
                    });
                }
                // The existing threads will get to it.
                Err(_) => {}
            }
        }
        let (sender, receiver) = watch::channel(None);
        questions.open.insert(host.to_owned(), sender);
        questions.waiting.push_back(host.to_owned());
        Ok(receiver)
    }
}

impl Questions {
    /// Drops waiting names that no caller waits for any more.
    fn forget_abandoned(&mut self) {
        let Questions { waiting, open, .. } = self;
        waiting.retain(|host| {
            let is_awaited = open.get(host).is_some_and(|to| to.receiver_count() > 0);
            if !is_awaited {
                open.remove(host);
            }
            is_awaited
        });
    }
}

impl ResolverState {
    /// Processes queries until there are none left.
    fn work(&self) {
        while let Some(host) = self.next() {
            let addresses = catch_unwind(AssertUnwindSafe(|| (self.look_up)(&host)));
            let addresses =
                addresses.unwrap_or_else(|_| Err(io::Error::other("the resolver failed")));
            let addresses = addresses.map_err(|error| LookupError::Failed {
                host: host.clone(),
                source: Arc::new(error),
            });
            let answer = self.questions.lock().open.remove(&host);
            if let Some(answer) = answer {
                // If no caller waits any more, nobody needs the answer.
                let _ = answer.send(Some(addresses));
            }
        }
    }

    /// Returns the next name. If there is none, the thread counts as ended, so the next caller starts another.
    fn next(&self) -> Option<String> {
        let mut questions = self.questions.lock();
        questions.forget_abandoned();
        let next = questions.waiting.pop_front();
        if next.is_none() {
            questions.threads -= 1;
        }
        next
    }
}

fn given_up(host: &str) -> LookupError {
    LookupError::Failed {
        host: host.to_owned(),
        source: Arc::new(io::Error::other("the lookup was abandoned")),
    }
}

#[cfg(test)]
impl SystemNames {
    pub(crate) fn count_waiting(&self) -> usize {
        self.shared.questions.lock().waiting.len()
    }

    /// Returns how many callers wait for the answer to `host`.
    pub(crate) fn count_waiting_for(&self, host: &str) -> usize {
        let questions = self.shared.questions.lock();
        questions
            .open
            .get(host)
            .map_or(0, watch::Sender::receiver_count)
    }

    pub(crate) fn count_threads(&self) -> usize {
        self.shared.questions.lock().threads
    }
}
