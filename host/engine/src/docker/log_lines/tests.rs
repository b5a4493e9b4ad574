use proptest::prelude::*;

use super::*;

const TIME: &str = "2026-01-02T03:04:05.678901234Z";
const TIME_MS: i64 = 1_767_323_045_678;

fn split(framing: Framing, pieces: &[&[u8]]) -> Vec<LogLine> {
    let mut lines = Vec::new();
    let mut splitter = LineSplitter::new(framing);
    for piece in pieces {
        splitter.feed(piece, &mut |line| lines.push(line));
    }
    splitter.finish(&mut |line| lines.push(line));
    lines
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    let mut frame = vec![kind, 0, 0, 0];
    frame.extend(length.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Formats a line as the engine sends it: cut every 16 KiB, each piece with a time.
fn stamped(text: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces: Vec<Vec<u8>> = text
        .chunks(MAX_LINE)
        .map(|chunk| [TIME.as_bytes(), b" ", chunk].concat())
        .collect();
    if pieces.is_empty() {
        pieces.push(format!("{TIME} ").into());
    }
    pieces.last_mut().unwrap().push(b'\n');
    pieces
}

fn messages(lines: &[LogLine]) -> Vec<(&str, bool)> {
    lines
        .iter()
        .map(|line| (line.message.as_str(), line.stderr))
        .collect()
}

#[test]
fn frames_become_lines_of_their_output() {
    let stream = [
        frame(1, format!("{TIME} one\n").as_bytes()),
        frame(2, format!("{TIME} two\n").as_bytes()),
        frame(1, format!("{TIME} \n").as_bytes()),
        frame(1, format!("{TIME} no end").as_bytes()),
    ]
    .concat();
    let lines = split(Framing::Multiplexed, &[&stream]);
    assert_eq!(
        messages(&lines),
        [
            ("one", false),
            ("two", true),
            ("", false),
            ("no end", false)
        ]
    );
    assert!(
        lines.iter().all(|line| line.timestamp_ms == TIME_MS),
        "{lines:?}"
    );
}

#[test]
fn lines_of_both_outputs_do_not_mix() {
    let stream = [
        frame(1, format!("{TIME} begun ").as_bytes()),
        frame(2, format!("{TIME} between\n").as_bytes()),
        frame(1, format!("{TIME} and ended\n").as_bytes()),
    ]
    .concat();
    let lines = split(Framing::Multiplexed, &[&stream]);
    assert_eq!(
        messages(&lines),
        [("between", true), ("begun and ended", false)]
    );
}

#[test]
fn terminals_end_lines_with_a_carriage_return() {
    let stream = format!("{TIME} one\r\n{TIME} two\r\r\n{TIME} \r\n{TIME} three");
    let lines = split(Framing::Raw, &[stream.as_bytes()]);
    assert_eq!(
        messages(&lines),
        [
            ("one", false),
            ("two\r", false),
            ("", false),
            ("three", false)
        ]
    );
}

#[test]
fn lines_without_a_time_are_kept() {
    let lines = split(
        Framing::Raw,
        &[b"no time here\nword\n\n", b"2026-01-02 half a time"],
    );
    assert_eq!(
        messages(&lines),
        [
            ("no time here", false),
            ("word", false),
            ("", false),
            ("2026-01-02 half a time", false)
        ]
    );
}

#[test]
fn a_line_as_long_as_a_piece_has_no_empty_rest() {
    let text = vec![b'x'; MAX_LINE];
    for framing in [Framing::Raw, Framing::Multiplexed] {
        let stream = [stream_of(framing, &text), stream_of(framing, b"next")].concat();
        let lines = split(framing, &[&stream]);
        assert_eq!(lines.len(), 2, "{framing:?}");
        assert_eq!(
            (lines[0].message.len(), lines[1].message.as_str()),
            (MAX_LINE, "next")
        );
    }
}

#[test]
fn endless_lines_and_frames_take_bounded_memory() {
    let mut longest = 0;
    let mut splitter = LineSplitter::new(Framing::Raw);
    for _ in 0..100 {
        splitter.feed(&[b'x'; 50_000], &mut |line| {
            longest = longest.max(line.message.len())
        });
        assert!(splitter.outputs[0].text.len() < 2 * MAX_LINE);
    }
    assert_eq!(longest, MAX_LINE);
    // A frame that claims to have 4 GiB.
    let mut splitter = LineSplitter::new(Framing::Multiplexed);
    splitter.feed(&[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff], &mut |_| {});
    for _ in 0..100 {
        splitter.feed(&[b'x'; 50_000], &mut |_| {});
        assert!(splitter.outputs[0].text.len() < 2 * MAX_LINE);
    }
}

fn stream_of(framing: Framing, text: &[u8]) -> Vec<u8> {
    let pieces = stamped(text).into_iter();
    match framing {
        Framing::Raw => pieces.collect::<Vec<_>>().concat(),
        Framing::Multiplexed => pieces
            .map(|piece| frame(1, &piece))
            .collect::<Vec<_>>()
            .concat(),
    }
}

proptest! {
    #[test]
    fn where_the_stream_is_cut_makes_no_difference(
        lines in prop::collection::vec((0..40_000_usize, prop::char::range('a', 'ü')), 1..5),
        cuts in prop::collection::vec(0..200_000_usize, 0..20),
        raw: bool,
    ) {
        let framing = if raw { Framing::Raw } else { Framing::Multiplexed };
        let texts: Vec<String> = lines
            .iter()
            .map(|(length, letter)| letter.to_string().repeat(*length))
            .filter(|text| !text.contains(['\r', '\n']))
            .collect();
        let stream: Vec<u8> = texts.iter().flat_map(|text| stream_of(framing, text.as_bytes())).collect();
        let mut cuts: Vec<_> = cuts.into_iter().filter(|cut| *cut < stream.len()).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts {
            pieces.push(&stream[from..cut]);
            from = cut;
        }
        pieces.push(&stream[from..]);

        let found = split(framing, &pieces);
        prop_assert_eq!(&found, &split(framing, &[&stream]));
        let all: String = found.iter().map(|line| line.message.as_str()).collect();
        prop_assert_eq!(all, texts.concat());
        for line in &found {
            prop_assert!(line.message.len() <= MAX_LINE);
            prop_assert_eq!(line.timestamp_ms, TIME_MS);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20), raw: bool) {
        let framing = if raw { Framing::Raw } else { Framing::Multiplexed };
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        for line in split(framing, &pieces) {
            prop_assert!(line.message.len() <= 3 * MAX_LINE);
        }
    }
}
