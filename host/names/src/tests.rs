use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::*;

/// The time limit for waiting: far more than needed.
const DEADLINE: Duration = Duration::from_secs(240);

/// A resolver that answers names when the test allows it, and not before.
struct SilentResolver {
    names: SystemNames,
    /// The queries that threads have begun.
    queries: Receiver<String>,
    /// Each message lets one thread answer.
    answers: Sender<()>,
}

impl SilentResolver {
    fn new(within: Duration) -> SilentResolver {
        let (begun, queries) = channel();
        let (answers, answer) = channel::<()>();
        let answer = Mutex::new(answer);
        let names = SystemNames::within(within, move |host| {
            begun.send(host.to_owned()).unwrap();
            // If the test has ended, the thread ends, too.
            let _ = answer.lock().unwrap().recv();
            Ok(vec!["192.0.2.7:0".parse().unwrap()])
        });
        SilentResolver {
            names,
            queries,
            answers,
        }
    }

    fn ask(&self, host: &str) -> tokio::task::JoinHandle<Result<Vec<SocketAddr>, LookupError>> {
        let (names, host) = (self.names.clone(), host.to_owned());
        tokio::spawn(async move { names.addresses(&host).await })
    }

    /// Returns the names that this many further threads query.
    fn begun(&self, count: usize) -> BTreeSet<String> {
        let next = |_| self.queries.recv_timeout(DEADLINE).expect("a question");
        (0..count).map(next).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_resolver_takes_four_threads_and_refuses_whom_it_cannot_queue() {
    let silent = SilentResolver::new(DEADLINE);
    let names: Vec<String> = (0..bounds::THREADS + bounds::WAITING)
        .map(|number| format!("silent-{number}.example"))
        .collect();
    let mut waiting: Vec<_> = names[..bounds::THREADS]
        .iter()
        .map(|name| silent.ask(name))
        .collect();
    let expected: BTreeSet<String> = names[..bounds::THREADS].iter().cloned().collect();
    assert_eq!(silent.begun(bounds::THREADS), expected);
    for name in &names[bounds::THREADS..] {
        waiting.push(silent.ask(name));
    }
    assert!(silent.queries.try_recv().is_err(), "no fifth thread");
    while silent.names.count_waiting() < bounds::WAITING {
        tokio::task::yield_now().await;
    }
    let refused = silent.names.addresses("one-more.example").await;
    assert!(
        matches!(refused, Err(LookupError::Busy { .. })),
        "{refused:?}"
    );
    // An address needs no lookup.
    let own = silent.names.addresses("[2001:db8::1]").await.unwrap();
    assert_eq!(own, ["[2001:db8::1]:0".parse().unwrap()]);
    // All are answered, and then the threads end.
    for _ in &names {
        silent.answers.send(()).unwrap();
    }
    for answer in waiting {
        assert_eq!(answer.await.unwrap().unwrap()[0].to_string(), "192.0.2.7:0");
    }
    while silent.names.count_threads() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_of_one_name_share_one_query() {
    let silent = SilentResolver::new(DEADLINE);
    let first = silent.ask("registry.example");
    assert_eq!(silent.begun(1).len(), 1);
    let others: Vec<_> = (0..12).map(|_| silent.ask("registry.example")).collect();
    let other = silent.ask("api.example");
    assert_eq!(silent.begun(1), BTreeSet::from(["api.example".to_owned()]));
    // A caller that came after the answer would start a new query.
    while silent.names.count_waiting_for("registry.example") < 1 + others.len() {
        tokio::task::yield_now().await;
    }
    silent.answers.send(()).unwrap();
    silent.answers.send(()).unwrap();
    for answer in others.into_iter().chain([first, other]) {
        answer.await.unwrap().unwrap();
    }
    assert!(silent.queries.try_recv().is_err(), "it was asked once");
}

#[tokio::test]
async fn waiting_for_a_silent_name_ends_with_a_timeout_and_the_name_keeps_one_thread() {
    let silent = SilentResolver::new(Duration::from_millis(20));
    for _ in 0..3 {
        let error = silent.names.addresses("silent.example").await.unwrap_err();
        assert!(matches!(error, LookupError::Timeout { .. }), "{error}");
        assert!(error.to_string().contains("`silent.example`"), "{error}");
    }
    assert_eq!(silent.begun(1).len(), 1);
    assert!(silent.queries.try_recv().is_err(), "it was asked once");
    assert_eq!(silent.names.count_threads(), 1);
}

#[tokio::test]
async fn errors_of_the_resolver_are_reported_with_the_name() {
    let names = SystemNames::new(|_| Err(io::Error::other("no such host")));
    let error = names.addresses("gone.example").await.unwrap_err();
    assert_eq!(error.to_string(), "`gone.example` has no address");
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.to_string(), "no such host");
    // A resolver that panics does not end its thread.
    let names = SystemNames::new(|_| panic!("a test of panics"));
    for _ in 0..2 * bounds::THREADS {
        let error = names.addresses("gone.example").await.unwrap_err();
        assert!(matches!(error, LookupError::Failed { .. }), "{error}");
    }
}

#[tokio::test]
async fn names_of_the_hosts_file_are_found() {
    let found = system().addresses("localhost").await.unwrap();
    assert!(
        found.iter().all(|address| address.ip().is_loopback()),
        "{found:?}"
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for host in ["127.0.0.1", "localhost"] {
        connect(host, port).await.unwrap();
    }
}
