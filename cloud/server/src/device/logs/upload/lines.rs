//! Splits the bytes of a stream into lines of text, a few bytes at a time, and decompresses them if necessary.

use std::io::Write as _;

use axum::body::Bytes;
use flate2::write::MultiGzDecoder;

/// Bytes that are processed in one step: decompressed, they are at most a thousand times as many.
const AT_ONCE: usize = 1024;
/// Maximum bytes of a line.
const LONGEST: usize = 128 * 1024;

/// Turns bytes into lines.
pub(super) struct Decoder {
    form: Form,
    /// The beginning of an incomplete line.
    begun: Vec<u8>,
}

enum Form {
    Plain,
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
}

impl Decoder {
    pub(super) fn plain() -> Self {
        Decoder {
            form: Form::Plain,
            begun: Vec::new(),
        }
    }

    pub(super) fn gzip() -> Self {
        Decoder {
            form: Form::Gzip(Box::new(MultiGzDecoder::new(Vec::new()))),
            begun: Vec::new(),
        }
    }

    /// Returns the lines completed by some of the bytes, which are consumed.
    ///
    /// # Errors
    /// The error in them, for the sender.
    pub(super) fn decode(&mut self, bytes: &mut Bytes) -> Result<Vec<Vec<u8>>, String> {
        let some = bytes.split_to(bytes.len().min(AT_ONCE));
        match &mut self.form {
            Form::Plain => self.begun.extend_from_slice(&some),
            Form::Gzip(gzip) => {
                gzip.write_all(&some)
                    .and_then(|()| gzip.flush())
                    .map_err(|error| format!("the body is not valid gzip: {error}"))?;
                self.begun.append(gzip.get_mut());
            }
        }
        self.lines()
    }

    fn lines(&mut self) -> Result<Vec<Vec<u8>>, String> {
        let Some(last) = self.begun.iter().rposition(|byte| *byte == b'\n') else {
            return self.short_enough(Vec::new());
        };
        let rest = self.begun.split_off(last + 1);
        let whole = std::mem::replace(&mut self.begun, rest);
        let lines: Vec<Vec<u8>> = whole
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(<[u8]>::to_vec)
            .collect();
        self.short_enough(lines)
    }

    fn short_enough(&self, lines: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, String> {
        let longest = lines.iter().map(Vec::len).max().unwrap_or_default();
        if longest.max(self.begun.len()) <= LONGEST {
            Ok(lines)
        } else {
            Err(format!("a line has more than {LONGEST} bytes"))
        }
    }

    /// Returns the remainder when the stream ends: a line without a terminator.
    ///
    /// # Errors
    /// As for [`Decoder::decode`].
    pub(super) fn end(mut self) -> Result<Vec<Vec<u8>>, String> {
        if let Form::Gzip(gzip) = &mut self.form {
            // For a stream that was cut off, what was decoded so far is used.
            let _ = gzip.try_finish();
            self.begun.append(gzip.get_mut());
        }
        let mut lines = self.lines()?;
        if !self.begun.is_empty() {
            lines.push(self.begun);
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn lines(mut decoder: Decoder, pieces: &[&[u8]]) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        for piece in pieces {
            let mut bytes = Bytes::copy_from_slice(piece);
            while !bytes.is_empty() {
                found.extend(decoder.decode(&mut bytes)?);
            }
        }
        found.extend(decoder.end()?);
        Ok(found
            .into_iter()
            .map(|line| String::from_utf8(line).unwrap())
            .collect())
    }

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn lines_are_whole_however_their_bytes_come() {
        let text = b"one\ntwo\n\nthree";
        let expected = ["one", "two", "three"];
        assert_eq!(lines(Decoder::plain(), &[text]).unwrap(), expected);
        let each: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(lines(Decoder::plain(), &each).unwrap(), expected);
        let gzip = packed(text);
        assert_eq!(lines(Decoder::gzip(), &[&gzip]).unwrap(), expected);
        let each: Vec<&[u8]> = gzip.chunks(1).collect();
        assert_eq!(lines(Decoder::gzip(), &each).unwrap(), expected);
    }

    #[test]
    fn a_packed_line_comes_out_when_its_sender_flushed_it() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"now\n").unwrap();
        encoder.flush().unwrap();
        let mut bytes = Bytes::from(encoder.get_ref().clone());
        let mut decoder = Decoder::gzip();
        let mut found = Vec::new();
        while !bytes.is_empty() {
            found.extend(decoder.decode(&mut bytes).unwrap());
        }
        assert_eq!(found, [b"now".to_vec()]);
    }

    #[test]
    fn oversized_lines_and_invalid_gzip_are_refused() {
        assert!(lines(Decoder::plain(), &[&vec![b'x'; LONGEST + 1]]).is_err());
        let bomb = packed(&vec![b'x'; 100 << 20]);
        assert!(bomb.len() < 1 << 20);
        assert!(lines(Decoder::gzip(), &[&bomb]).is_err());
        assert!(lines(Decoder::gzip(), &[b"{\"message\":\"not packed\"}"]).is_err());
    }
}
