use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use futures::future::join_all;
use os::{
    Bias, Drive, EdgeDetection, GpioChips, GpioError, GpioLine, KernelGpio, LineAddress, LineId,
    LineMode, LineRequest,
};
use tests::DEADLINE;
use tokio::time::timeout;

use crate::simulated_chip::SimulatedChip;

const INPUT: LineMode = LineMode::Input {
    bias: None,
    debounce: None,
};

fn output(on: bool) -> LineMode {
    let drive = Drive::PushPull;
    LineMode::Output { drive, on }
}

fn line(chip: &str, line: LineId, mode: LineMode) -> LineRequest {
    LineRequest {
        address: LineAddress {
            chip: chip.to_owned(),
            line,
        },
        mode,
        active_low: false,
        consumer: "plugin one".to_owned(),
    }
}

fn request(
    chip: &SimulatedChip,
    number: u32,
    mode: LineMode,
) -> Result<Box<dyn GpioLine>, GpioError> {
    let request = line(&chip.name, LineId::Number(number), mode);
    KernelGpio::new("/dev").request(&request)
}

async fn is_next_edge_rising(line: &dyn GpioLine) -> bool {
    let edge = timeout(DEADLINE, line.next_edge()).await.unwrap().unwrap();
    assert_eq!(edge.lost, 0);
    edge.is_rising
}

#[tokio::test]
#[ignore = "runs in the virtual machine"]
async fn a_line_is_found_by_the_names_and_numbers_of_it_and_its_chip() {
    let (chip, other) = (
        SimulatedChip::new("door-chip"),
        SimulatedChip::new("other-chip"),
    );
    let name = |name: &str| LineId::Name(name.to_owned());
    chip.drive(3, true);
    for request in [
        line(&chip.name, LineId::Number(3), INPUT),
        line(&chip.name, name("DOOR"), INPUT),
        line(chip.label(), LineId::Number(3), INPUT),
        line(chip.label(), name("DOOR"), INPUT),
    ] {
        let line = KernelGpio::new("/dev").request(&request).unwrap();
        assert_eq!(line.value(), Ok(true), "{request:?}");
    }
    for (request, expected) in [
        (
            line(&chip.name, LineId::Number(8), INPUT),
            "has the lines 0 to 7, not 8",
        ),
        (
            line(&chip.name, name("GATE"), INPUT),
            "has no line with the name \"GATE\"",
        ),
        (
            line("gate-chip", LineId::Number(3), INPUT),
            "the label \"gate-chip\"",
        ),
        (
            line("gpiochip99", LineId::Number(3), INPUT),
            "has no GPIO chip",
        ),
    ] {
        let error = KernelGpio::new("/dev").request(&request).err().unwrap();
        assert!(matches!(error, GpioError::NotFound(_)), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(!other.is_up(3));
}

#[tokio::test]
#[ignore = "runs in the virtual machine"]
async fn devices_that_are_not_chips_are_not_opened_and_links_to_chips_are() {
    let chip = SimulatedChip::new("door-chip");
    let folder = tempfile::tempdir().unwrap();
    for (file, target) in [("gpiochip7", "/dev/mem"), ("gpiochip8", "/dev/null")] {
        symlink(target, folder.path().join(file)).unwrap();
        let request = line(file, LineId::Number(0), INPUT);
        let error = KernelGpio::new(folder.path())
            .request(&request)
            .err()
            .unwrap();
        assert!(error.to_string().contains("is not a GPIO chip"), "{error}");
    }
    // Raspberry Pi OS has such a link on some boards.
    symlink(
        format!("/dev/{}", chip.name),
        folder.path().join("gpiochip4"),
    )
    .unwrap();
    let request = line("gpiochip4", LineId::Number(0), INPUT);
    assert!(KernelGpio::new(folder.path()).request(&request).is_ok());
}

#[tokio::test]
#[ignore = "runs in the virtual machine"]
async fn an_output_is_as_it_was_set_for_as_long_as_it_is_held() {
    let chip = SimulatedChip::new("door-chip");
    let relay = request(&chip, 1, output(true)).unwrap();
    assert!(chip.is_up(1));
    relay.set(false).unwrap();
    assert!(!chip.is_up(1));
    relay.set(true).unwrap();
    assert_eq!(relay.value(), Ok(true));
    assert!(chip.is_up(1));
    // Nobody else holds it.
    for mode in [INPUT, output(false), LineMode::AsIs] {
        let busy = request(&chip, 1, mode).err().unwrap();
        assert!(matches!(busy, GpioError::Busy(_)), "{busy:?}");
        assert!(
            busy.to_string().contains("in use by `plugin one`"),
            "{busy}"
        );
    }
    assert!(chip.is_up(1));
    drop(relay);
    assert!(request(&chip, 1, output(false)).is_ok());
}

#[tokio::test]
#[ignore = "runs in the virtual machine"]
async fn reading_a_line_as_it_is_changes_nothing() {
    let chip = SimulatedChip::new("door-chip");
    let direction = || {
        let request = line(&chip.name, LineId::Number(1), LineMode::AsIs);
        KernelGpio::new("/dev").request(&request).unwrap().value()
    };
    chip.drive(1, true);
    assert_eq!(direction(), Ok(true));
    chip.drive(1, false);
    assert_eq!(direction(), Ok(false));
}

#[tokio::test]
#[ignore = "runs in the virtual machine"]
async fn lines_are_configured_as_requested() {
    let chip = SimulatedChip::new("door-chip");
    let inverted = |mode| {
        let request = LineRequest {
            active_low: true,
            ..line(&chip.name, LineId::Number(1), mode)
        };
        KernelGpio::new("/dev").request(&request).unwrap()
    };
    let relay = inverted(output(true));
    assert!(!chip.is_up(1));
    drop(relay);
    chip.drive(1, true);
    assert_eq!(inverted(INPUT).value(), Ok(false));
    for (bias, expected) in [(Bias::PullUp, true), (Bias::PullDown, false)] {
        let mode = LineMode::Input {
            bias: Some(bias),
            debounce: Some(Duration::from_millis(1)),
        };
        assert_eq!(request(&chip, 2, mode).unwrap().value(), Ok(expected));
    }
    let drive = Drive::OpenDrain;
    let relay = request(&chip, 4, LineMode::Output { drive, on: false }).unwrap();
    assert_eq!(relay.value(), Ok(false));
}

#[tokio::test]
#[ignore = "runs in the virtual machine"]
async fn edges_arrive_in_order_and_only_after_the_request() {
    let chip = SimulatedChip::new("door-chip");
    let door = request(&chip, 3, INPUT).unwrap();
    chip.drive(3, true);
    chip.drive(3, false);
    door.detect_edges(EdgeDetection::On).unwrap();
    let mut times = Vec::new();
    // One at a time: the kernel reads the level when it handles an edge, which may be after the next one.
    for expected in [true, false, true] {
        chip.drive(3, expected);
        let edge = timeout(DEADLINE, door.next_edge()).await.unwrap().unwrap();
        assert_eq!((edge.is_rising, edge.lost), (expected, 0));
        times.push(edge.nanoseconds);
    }
    assert!(times.is_sorted(), "{times:?}");
    // An edge that comes while a caller waits.
    let (is_rising, ()) = tokio::join!(is_next_edge_rising(&*door), async {
        tokio::task::yield_now().await;
        chip.drive(3, false);
    });
    assert!(!is_rising);
    // Edges from before that are discarded.
    chip.drive(3, true);
    door.detect_edges(EdgeDetection::Off).unwrap();
    chip.drive(3, false);
    door.detect_edges(EdgeDetection::On).unwrap();
    chip.drive(3, true);
    assert!(is_next_edge_rising(&*door).await);
    let none = timeout(Duration::ZERO, door.next_edge()).await;
    assert!(none.is_err(), "{none:?}");
}

#[tokio::test]
#[ignore = "runs in the virtual machine"]
async fn edges_that_find_no_room_are_counted() {
    let chip = SimulatedChip::new("door-chip");
    let door = request(&chip, 3, INPUT).unwrap();
    door.detect_edges(EdgeDetection::On).unwrap();
    // A busy kernel merges edges that come fast, so how many of them fill its buffer is unknown.
    let (mut driven, mut received, mut lost) = (0, 0, 0);
    while lost == 0 {
        for number in 0..driven.max(200) {
            chip.drive(3, number % 2 == 0);
            driven += 1;
        }
        while let Ok(edge) = timeout(Duration::from_millis(200), door.next_edge()).await {
            lost += edge.unwrap().lost;
            received += 1;
        }
    }
    assert!(lost + received <= driven, "{lost} {received} {driven}");
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

#[tokio::test]
#[ignore = "runs in the virtual machine"]
async fn waits_for_edges_take_no_thread() {
    let chip = SimulatedChip::new("door-chip");
    let lines: Vec<_> = (0..8)
        .map(|number| request(&chip, number, INPUT).unwrap())
        .collect();
    for line in &lines {
        line.detect_edges(EdgeDetection::On).unwrap();
    }
    let before = threads();
    let waits = lines.iter().map(|line| is_next_edge_rising(&**line));
    let (edges, ()) = tokio::join!(join_all(waits), async {
        tokio::task::yield_now().await;
        assert_eq!(threads(), before);
        (0..8).for_each(|number| chip.drive(number, true));
    });
    assert_eq!(edges, [true; 8]);
}
