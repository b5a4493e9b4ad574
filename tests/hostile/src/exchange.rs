//! A caller's attack: its script over one connection, or over several at once.

use std::io;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::attack::Attack;
use crate::probes::Probes;
use crate::script::{self, Act, Expectation, Placeholders};
use crate::verdict::{Outcome, Victim};

/// How long a script may wait for the device.
const WITHIN: Duration = Duration::from_secs(45);
/// How long `hold` stays, in rounds of probes.
const HOLDS_FOR: u64 = 10;
/// How much of an answer is read, in bytes.
const READ_UP_TO: u64 = 4 << 20;

/// Runs a caller's script, and judges the result.
///
/// # Errors
/// Which expectation failed.
pub async fn attack(victim: &mut Victim, attack: &Attack) -> Result<()> {
    let host = victim.device.base().trim_start_matches("http://");
    let placeholders = Placeholders {
        key: victim.device.key(),
        host,
    };
    let acts = script::parse(&attack.text, &placeholders)?;
    ensure!(!acts.is_empty(), "it does nothing");
    let at_once = attack.number("at-once", 1)?;
    let callers = (0..at_once).map(|_| call(host, &acts, &victim.probes));
    let answers = timeout(WITHIN, futures::future::try_join_all(callers))
        .await
        .context("it waits for what does not come")??;
    let answers: Vec<_> = answers.into_iter().flatten().collect();
    let names = answers.iter().any(|answer| answer.status >= 400);
    let texts: Vec<_> = answers.into_iter().map(|answer| answer.text).collect();
    let outcome = Outcome {
        answers: &texts.join("\n"),
        names,
    };
    victim.judge(attack, outcome).await
}

struct Answer {
    status: u16,
    /// Head and body.
    text: String,
}

async fn call(host: &str, acts: &[Act], probes: &Probes) -> Result<Vec<Answer>> {
    let stream = TcpStream::connect(host).await?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let mut answers = Vec::new();
    for act in acts {
        match act {
            // If the connection ends while this is sent, the next expected answer is missing.
            Act::Send(bytes) => drop(send(&mut stream, bytes).await),
            Act::SendSlowly(bytes) => {
                for byte in bytes {
                    drop(send(&mut stream, &[*byte]).await);
                    probes.rounds(1).await;
                }
            }
            Act::Expect(expected) => answers.extend(expect(&mut stream, expected).await?),
            Act::HalfClose => drop(stream.get_mut().shutdown().await),
            Act::Hold => probes.rounds(HOLDS_FOR).await,
            Act::Reset => {
                stream.get_ref().set_zero_linger()?;
                return Ok(answers);
            }
        }
    }
    Ok(answers)
}

/// Sends as much as the device accepts: a caller that sends more continues with its next act.
async fn send(stream: &mut BufReader<TcpStream>, bytes: &[u8]) -> io::Result<()> {
    const STUCK: Duration = Duration::from_secs(3);
    match timeout(STUCK, stream.get_mut().write_all(bytes)).await {
        Ok(sent) => sent,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

async fn expect(
    stream: &mut BufReader<TcpStream>,
    expected: &Expectation,
) -> Result<Option<Answer>> {
    let answer = read(stream).await?;
    let Expectation::Answer {
        statuses,
        or_closed,
        text,
    } = expected
    else {
        return Ok(answer);
    };
    match answer {
        None if *or_closed => Ok(None),
        None => bail!("the connection ended in place of an answer {statuses:?}"),
        Some(answer) => {
            let is_expected = statuses.contains(&answer.status) && answer.text.contains(text);
            let shown: String = answer.text.chars().take(1000).collect();
            ensure!(
                is_expected,
                "it was answered `{shown}`, and not {statuses:?} {text}"
            );
            Ok(Some(answer))
        }
    }
}

/// Reads the next answer; `None` if the connection ends first. Interim answers are skipped.
async fn read(stream: &mut BufReader<TcpStream>) -> Result<Option<Answer>> {
    loop {
        let Some(first) = line(stream).await? else {
            return Ok(None);
        };
        let status = first
            .strip_prefix("HTTP/1.1 ")
            .or(first.strip_prefix("HTTP/1.0 "))
            .and_then(|rest| rest.get(..3)?.parse::<u16>().ok())
            .with_context(|| format!("`{first}` is no answer of HTTP"))?;
        let mut text = format!("{first}\n");
        let (mut length, mut is_chunked) = (None, false);
        loop {
            let Some(line) = line(stream).await? else {
                return Ok(None);
            };
            if line.is_empty() {
                break;
            }
            let small = line.to_ascii_lowercase();
            if let Some(value) = small.strip_prefix("content-length:") {
                length = Some(value.trim().parse::<u64>()?);
            }
            is_chunked |= small == "transfer-encoding: chunked";
            text.push_str(&line);
            text.push('\n');
        }
        if (100..200).contains(&status) && status != 101 {
            continue;
        }
        let body = match (is_chunked, length) {
            // A stream has no end: its beginning is enough.
            (true, _) => line(stream).await?.unwrap_or_default().into_bytes(),
            (false, length) => {
                let mut body = Vec::new();
                let length = length.unwrap_or(0).min(READ_UP_TO);
                stream.take(length).read_to_end(&mut body).await?;
                body
            }
        };
        text.push_str(&String::from_utf8_lossy(&body));
        return Ok(Some(Answer { status, text }));
    }
}

/// Reads a line without its end; `None` if the connection has ended in any way.
async fn line(stream: &mut BufReader<TcpStream>) -> Result<Option<String>> {
    let mut line = Vec::new();
    let read = stream.take(READ_UP_TO).read_until(b'\n', &mut line).await;
    match read {
        Ok(0) | Err(_) => Ok(None),
        Ok(_) => {
            let line = String::from_utf8_lossy(&line);
            Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
        }
    }
}
