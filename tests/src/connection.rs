//! One connection that is kept open, to see exactly how its server treats it. A client's library would send a request
//! again if its answer was lost.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// The longest line of a head, and the longest piece of a body, in bytes.
const MAX: usize = 16 << 20;

/// A connection to a supervisor.
pub struct Connection {
    stream: BufReader<TcpStream>,
    key: String,
}

/// A body that continues for as long as it is read.
pub struct StreamBody {
    connection: Connection,
    is_chunked: bool,
}

/// The head of an answer.
struct Head {
    status: u16,
    length: Option<usize>,
    is_chunked: bool,
}

impl Connection {
    /// Opens a connection. `base` is `http://ADDRESS:PORT`, and `key` is sent with each request.
    ///
    /// # Errors
    /// If nobody listens.
    pub async fn open(base: &str, key: &str) -> io::Result<Self> {
        let address = base.trim_start_matches("http://");
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream: BufReader::new(stream),
            key: key.to_owned(),
        })
    }

    /// Sends a `GET`; returns the status and the whole body.
    ///
    /// # Errors
    /// If the answer is lost or is not HTTP.
    pub async fn get(&mut self, path: &str) -> io::Result<(u16, Vec<u8>)> {
        self.send("GET", path, "", "").await?;
        let head = self.head().await?;
        let mut body = Vec::new();
        if head.is_chunked {
            while let Some(piece) = self.chunk().await? {
                body.extend_from_slice(&piece);
            }
        } else {
            let length = head.length.unwrap_or(0).min(MAX);
            body.resize(length, 0);
            self.stream.read_exact(&mut body).await?;
        }
        Ok((head.status, body))
    }

    /// Sends a request whose answer is a stream, with more lines in its head.
    ///
    /// # Errors
    /// If it is refused, or the answer is lost.
    pub async fn stream(
        mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> io::Result<StreamBody> {
        self.send(method, path, headers, body).await?;
        let head = self.head().await?;
        if head.status != 200 {
            return Err(wrong(format!("{method} {path}: {}", head.status)));
        }
        Ok(StreamBody {
            connection: self,
            is_chunked: head.is_chunked,
        })
    }

    async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> io::Result<()> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n{headers}\
             content-length: {}\r\n\r\n{body}",
            self.key,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).await
    }

    async fn head(&mut self) -> io::Result<Head> {
        let first = self.line().await?;
        let status = first
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3)?.parse().ok())
            .ok_or_else(|| wrong(format!("no status line: {first:?}")))?;
        let (mut length, mut is_chunked) = (None, false);
        loop {
            let line = self.line().await?.to_ascii_lowercase();
            if line.is_empty() {
                return Ok(Head {
                    status,
                    length,
                    is_chunked,
                });
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = Some(value.trim().parse().map_err(io::Error::other)?);
            }
            is_chunked |= line == "transfer-encoding: chunked";
        }
    }

    /// Reads a line without its end.
    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// Returns the next piece of a body; `None` at its end.
    async fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let size = self.line().await?;
        let size = usize::from_str_radix(&size, 16).map_err(io::Error::other)?;
        if size > MAX {
            return Err(wrong(format!("a piece of {size} bytes")));
        }
        let mut piece = vec![0; size];
        self.stream.read_exact(&mut piece).await?;
        let end = self.line().await?;
        match (end.is_empty(), size) {
            (false, _) => Err(wrong(format!("a piece ends with {end:?}"))),
            (true, 0) => Ok(None),
            (true, _) => Ok(Some(piece)),
        }
    }
}

impl StreamBody {
    /// Returns the next piece; `None` at the end.
    ///
    /// # Errors
    /// If the stream ends early.
    pub async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.is_chunked {
            return self.connection.chunk().await;
        }
        let mut piece = vec![0; 16 << 10];
        let read = self.connection.stream.read(&mut piece).await?;
        piece.truncate(read);
        Ok((read > 0).then_some(piece))
    }
}

fn wrong(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
