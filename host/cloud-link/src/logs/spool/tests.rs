//! Waiting lines on the disk, through restarts, kills and floods.

use super::*;

const AMPLE: u64 = 8 << 20;

fn lines(numbers: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    numbers
        .map(|number| format!("{number}\n").into_bytes())
        .collect()
}

/// A line that does not pack well.
fn noise(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length / 2];
    getrandom::fill(&mut bytes).unwrap();
    let mut line = hex::encode(bytes).into_bytes();
    line.push(b'\n');
    line
}

/// Returns all waiting lines, as the cloud receives them.
fn drained(spool: &mut Spool) -> String {
    let mut all = String::new();
    while let Some((number, packed)) = spool.oldest().unwrap() {
        GzDecoder::new(&packed[..])
            .read_to_string(&mut all)
            .unwrap();
        spool.forget(number, true);
    }
    all
}

fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum()
}

#[test]
fn queued_lines_are_read_in_order_across_restarts_and_kills() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::open(folder.path(), AMPLE).unwrap();
    assert!(spool.is_empty());
    spool.append(&lines(0..10));
    spool.append(&lines(10..20));
    // A kill: nothing is closed.
    std::mem::forget(spool);
    let mut spool = Spool::open(folder.path(), AMPLE).unwrap();
    spool.append(&lines(20..30));
    drop(spool);
    let mut spool = Spool::open(folder.path(), AMPLE).unwrap();
    spool.append(&lines(30..40));
    let expected: String = (0..40).map(|number| format!("{number}\n")).collect();
    assert_eq!(drained(&mut spool), expected);
    assert!(spool.is_empty());
    assert_eq!(spool.lost(), 0);
}

#[test]
fn a_segment_that_was_cut_off_is_read_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::open(folder.path(), AMPLE).unwrap();
    spool.append(&lines(0..5));
    spool.append(&lines(5..8));
    std::mem::forget(spool);
    let path = folder.path().join(format!("{:016}.open", 0));
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let mut spool = Spool::open(folder.path(), AMPLE).unwrap();
        let found = drained(&mut spool);
        let expected: String = (0..8).map(|number| format!("{number}\n")).collect();
        assert!(expected.starts_with(&found), "{length}: {found}");
        assert!(found.is_empty() || found.ends_with('\n'));
    }
    fs::write(&path, "not packed at all").unwrap();
    fs::write(folder.path().join("foreign"), "x").unwrap();
    assert!(Spool::open(folder.path(), AMPLE).unwrap().is_empty());
}

#[test]
fn the_oldest_goes_where_there_is_no_room_and_the_loss_is_counted_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let limits = 400_000;
    let mut spool = Spool::open(folder.path(), limits).unwrap();
    for _ in 0..1000 {
        spool.append(&[noise(1000)]);
        assert!(
            size(folder.path()) < 400_000 + 300_000,
            "the open one is on top"
        );
    }
    let lost = spool.lost();
    assert!(lost >= 250, "{lost}");
    drop(spool);
    let mut spool = Spool::open(folder.path(), limits).unwrap();
    assert_eq!(spool.lost(), lost);
    let kept = drained(&mut spool).lines().count() as u64;
    assert_eq!(kept + lost, 1000);
    spool.count_reported(lost);
    drop(spool);
    assert_eq!(Spool::open(folder.path(), limits).unwrap().lost(), 0);
}

#[test]
fn a_flood_is_left_out_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::open(folder.path(), AMPLE).unwrap();
    let line = noise(100_000);
    spool.append(&vec![line; 100]);
    let kept = drained(&mut spool).lines().count() as u64;
    assert!((10..=20).contains(&kept), "{kept}");
    assert_eq!(kept + spool.lost(), 100);
    spool.clear();
    assert_eq!(spool.lost(), 0);
}

#[test]
fn lines_that_the_cloud_always_refuses_and_unreadable_ones_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::open(folder.path(), AMPLE).unwrap();
    spool.append(&lines(0..5));
    let (number, _) = spool.oldest().unwrap().unwrap();
    spool.forget(number + 1, false);
    assert!(!spool.is_empty(), "another one was meant");
    spool.forget(number, false);
    assert!(spool.is_empty());
    assert_eq!(spool.lost(), 5);
    spool.append(&lines(0..5));
    spool.close().unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    assert!(spool.oldest().unwrap().is_none());
    assert_eq!(spool.lost(), 10);
}
