//! Measures of the hardware, for the cloud's report (docs/spec/device.md#report-fields): read from files of the kernel,
//! on request. Measures that a board does not have are unknown.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;

/// Sizes are in MB of this many bytes.
const MB: u64 = 1 << 20;
/// The memory of a small board, in MB.
const SMALL_BOARD: u64 = 512;
/// The maximum number of sensors that are read.
const MAX_SENSORS: usize = 64;
/// The longest file of the kernel that is read, in bytes.
const LONGEST: u64 = 256 << 10;

/// One reading of the hardware.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Readings {
    /// Percent, since the previous reading.
    pub(crate) cpu_usage: Option<u64>,
    /// Degrees Celsius, of the hottest part.
    pub(crate) cpu_temp: Option<i64>,
    /// The board's serial number.
    pub(crate) cpu_id: Option<String>,
    /// Whether the power supply is too weak; false on boards that cannot measure it.
    pub(crate) is_undervolted: bool,
    /// In MB: the used and the total memory.
    pub(crate) memory: Option<(u64, u64)>,
    /// The same for the disk with the supervisor's state, and the disk's device.
    pub(crate) storage: Option<(u64, u64)>,
    pub(crate) storage_block_device: Option<String>,
}

/// The files to read, and the last counters of the processor.
pub(crate) struct Sensors {
    proc: PathBuf,
    sys: PathBuf,
    disk: PathBuf,
    cpu: Times,
}

/// The processors' counters since the boot, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Times {
    idle: u64,
    all: u64,
}

impl Sensors {
    /// Prepares the readings. `host_root` contains the host's `proc` and `sys`; if it has none, those of this process
    /// are used. `disk` is a folder on the disk to measure.
    pub(crate) fn new(host_root: &Path, disk: &Path) -> Self {
        let of = |name: &str| {
            let own = host_root.join(name);
            if own.is_dir() {
                own
            } else {
                Path::new("/").join(name)
            }
        };
        Sensors {
            proc: of("proc"),
            sys: of("sys"),
            disk: disk.to_owned(),
            cpu: Times::default(),
        }
    }

    /// Reads the hardware. Blocks for as long as the kernel takes to generate some small files.
    pub(crate) fn read(&mut self) -> Readings {
        let times = text(&self.proc.join("stat")).and_then(|stat| times(&stat));
        let cpu_usage = times.map(|now| {
            let before = std::mem::replace(&mut self.cpu, now);
            now.usage_since(before)
        });
        let storage = statvfs(&self.disk).ok().map(|disk| {
            let mb = |blocks: u64| blocks.saturating_mul(disk.f_frsize) / MB;
            let used = disk.f_blocks.saturating_sub(disk.f_bfree);
            (mb(used), mb(disk.f_blocks))
        });
        Readings {
            cpu_usage,
            cpu_temp: self.temperature(),
            cpu_id: self.serial_number(),
            is_undervolted: self.is_undervolted(),
            memory: text(&self.proc.join("meminfo")).and_then(|info| memory(&info)),
            storage,
            storage_block_device: self.block_device(),
        }
    }

    fn temperature(&self) -> Option<i64> {
        let zones = entries(&self.sys.join("class/thermal")).into_iter();
        let zones = zones.filter(|zone| name_of(zone).starts_with("thermal_zone"));
        let degrees = zones.filter_map(|zone| {
            let thousandths: i64 = text(&zone.join("temp"))?.trim().parse().ok()?;
            Some(thousandths / 1000)
        });
        // A missing sensor returns absurd values.
        degrees
            .filter(|degrees| (-60..=200).contains(degrees))
            .max()
    }

    fn serial_number(&self) -> Option<String> {
        let tree = text(&self.proc.join("device-tree/serial-number"));
        let number = tree.or_else(|| {
            let cpu = text(&self.proc.join("cpuinfo"))?;
            let line = cpu.lines().find(|line| line.starts_with("Serial"))?;
            Some(line.split_once(':')?.1.to_owned())
        });
        let plain: String = number?
            .chars()
            .filter(char::is_ascii_graphic)
            .take(64)
            .collect();
        (!plain.is_empty()).then_some(plain)
    }

    fn is_undervolted(&self) -> bool {
        entries(&self.sys.join("class/hwmon")).iter().any(|sensor| {
            let is = |file, value: &str| {
                text(&sensor.join(file)).is_some_and(|content| content.trim() == value)
            };
            is("name", "rpi_volt") && is("in0_lcrit_alarm", "1")
        })
    }

    /// Returns the kernel's name of the device that contains the disk's folder.
    fn block_device(&self) -> Option<String> {
        let number = fs::metadata(&self.disk).ok()?.dev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let mounts = text(Path::new("/proc/self/mountinfo"))?;
        let device = format!("{major}:{minor}");
        mounts.lines().find_map(|mount| {
            let (place, source) = mount.split_once(" - ")?;
            let is = place.split(' ').nth(2)? == device;
            is.then(|| source.split(' ').nth(1).map(str::to_owned))?
        })
    }
}

impl Times {
    /// Returns the percentage of the time in between that was not idle.
    fn usage_since(self, before: Times) -> u64 {
        let all = self.all.saturating_sub(before.all).max(1);
        let idle = self.idle.saturating_sub(before.idle).min(all);
        (all - idle) * 100 / all
    }
}

/// Parses the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
fn times(stat: &str) -> Option<Times> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line
        .split_ascii_whitespace()
        .take(8)
        .map_while(|ticks| ticks.parse().ok())
        .collect();
    let waits = ticks.get(4).copied().unwrap_or_default();
    Some(Times {
        idle: ticks.get(3)?.saturating_add(waits),
        all: ticks
            .iter()
            .fold(0, |sum, ticks| sum.saturating_add(*ticks)),
    })
}

/// Returns the memory of the board, in bytes. If the kernel does not report it, that of a small
/// board is assumed.
pub(crate) fn memory_of_board() -> u64 {
    let system = text(Path::new("/proc/meminfo")).and_then(|info| memory(&info));
    system.map_or(SMALL_BOARD, |(_, all)| all) * MB
}

/// Returns the memory that is unavailable to programs, and the total.
fn memory(meminfo: &str) -> Option<(u64, u64)> {
    let field = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes)
    };
    let (total, available) = (field("MemTotal:")?, field("MemAvailable:")?);
    let mb = |kibibytes: u64| kibibytes / 1024;
    Some((mb(total.saturating_sub(available)), mb(total)))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let entries = entries.take(MAX_SENSORS).filter_map(Result::ok);
    entries.map(|entry| entry.path()).collect()
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn text(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_as_far_as_it_says() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, content: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        put("proc/stat", "cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 1 2 3\n");
        put(
            "proc/meminfo",
            "MemTotal:  2048000 kB\nMemAvailable: 1024000 kB\n",
        );
        put("proc/device-tree/serial-number", "100000001\0");
        put("sys/class/thermal/thermal_zone0/temp", "41900\n");
        put("sys/class/thermal/thermal_zone1/temp", "52000\n");
        put("sys/class/thermal/thermal_zone2/temp", "999000\n");
        put("sys/class/thermal/cooling_device0/temp", "90000\n");
        put("sys/class/hwmon/hwmon0/name", "rpi_volt\n");
        put("sys/class/hwmon/hwmon0/in0_lcrit_alarm", "1\n");
        let mut sensors = Sensors::new(root.path(), root.path());
        let found = sensors.read();
        assert_eq!(found.cpu_usage, Some(20), "since the boot");
        assert_eq!(found.cpu_temp, Some(52));
        assert_eq!(found.cpu_id.as_deref(), Some("100000001"));
        assert!(found.is_undervolted);
        assert_eq!(found.memory, Some((1000, 2000)));
        let (used, total) = found.storage.unwrap();
        assert!(used <= total && total > 0);

        put("proc/stat", "cpu  40 0 20 110 30 0 0 0 0 0\n");
        put("sys/class/hwmon/hwmon0/in0_lcrit_alarm", "0\n");
        let later = sensors.read();
        assert_eq!(later.cpu_usage, Some(40), "since the look before");
        assert!(!later.is_undervolted);
    }

    #[test]
    fn missing_and_invalid_readings_of_a_board_are_absent() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        fs::create_dir(root.path().join("sys")).unwrap();
        let mut sensors = Sensors::new(root.path(), Path::new("/nonexistent"));
        assert_eq!(sensors.read(), Readings::default());
        for stat in ["", "cpu ", "cpu  1 2 3", "intr 1 2 3 4 5"] {
            assert_eq!(times(stat), None, "{stat}");
        }
        for info in ["", "MemTotal: 1 kB", "MemTotal: x kB\nMemAvailable: 1 kB\n"] {
            assert_eq!(memory(info), None, "{info}");
        }
    }
}
