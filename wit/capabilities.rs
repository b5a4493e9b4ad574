// What a plugin may reach beside its own memory, one row each, for the host and the SDK alike: `capabilities!(table)`
// passes all rows to the macro `table!`, which the file that includes this one declares.
//
//     ours     Name module "name"             the interface `platform:supervisor/NAME` of this folder, and with
//                                             [imports] others that do the same. It has a file MODULE.rs in
//                                             `host/plugins/src/provision` and one in `sdk/src`
//     wasi     Name module "name" [imports]   interfaces of WASI
//     policy   Name module "name"             what only a policy gives, in addition to another: no import stands for it
//
// `may` says what the owner of a device lets a plugin do that has it: the end of a sentence that begins "It may".
macro_rules! capabilities { ($table:ident $([$visibility:vis])?) => { $table! { $([$visibility])?
    /// Reads what the supervisor knows of the device.
    ours Device device "device"
        may "read the device's uuid, name, type and state";
    /// A small store of the plugin's own.
    ours Store store "store"
        may "keep up to 1 MiB of data of its own";
    /// The LEDs of the device.
    ours Led led "led"
        may "take over LEDs";
    /// The units of the host that the policy names.
    ours Units units "units"
        may "see the state of units of the host, and restart them";
    /// The host's journal.
    ours Journal journal "journal"
        may "read all of the host's journal";
    /// Has another plugin identify the device.
    ours Identify identify "identify"
        may "make the device identify itself, for example with an LED";
    /// Has another plugin configure the redirector of connections.
    ours ProxyRedirector proxy_redirector "proxy-redirector"
        may "read and write the proxy of the device's connections, with its password";
    /// Reads and sets the records that the cloud keeps of this device.
    ours Cloud cloud "cloud"
        may "read and set records of this device in its cloud";
    /// The update locks of all apps.
    ours UpdateLock update_lock "update-lock"
        may "hold the update locks of all apps, for 5 minutes at most";
    /// With `update-lock`: overrides locks that services hold.
    policy UpdateLockForce update_lock_force "update-lock-force"
        may "take update locks from services by force, with the grant `update-lock`";
    /// Reads and sets the host's name.
    ours HostName host_name "host-name"
        may "read and set the host's name";
    /// Reports gauges and counters for `GET /metrics`.
    ours Metrics metrics "metrics"
        may "show up to 100 gauges and counters of its own in GET /metrics";
    /// Adds fields to the device's report to its cloud.
    ours Report report "report"
        may "add up to 16 fields of its own to the device's report to its cloud, which people read in the dashboard";
    /// Requests to the hosts that the policy names.
    ours Http http "http" ["wasi:http/outgoing-handler"]
        may "send requests over the network to the hosts that you name";
    /// Has other plugins perform the actions that the policy names.
    ours Actions actions "actions"
        may "have other plugins perform the actions that you name";
    /// Requests to the routes of the device's own API that the policy names.
    ours Api api "api"
        may "request the routes of the device's own API that you name, with the rights of its own caller";
    /// Serial ports that the policy names.
    ours Serial serial "serial"
        may "open the serial ports that you name";
    /// Methods on the system bus that the policy names.
    ours Dbus dbus "dbus"
        may "call, as root, the methods of services on the system bus that you name";
    /// GPIO lines that the policy names.
    ours Gpio gpio "gpio"
        may "read and switch the GPIO lines that you name";
    /// Chips on I2C buses that the policy names.
    ours I2c i2c "i2c"
        may "talk to the chips on I2C buses that you name";
    /// The time of day and a clock that only goes forward.
    wasi Clock clock "clock" ["wasi:clocks/wall-clock", "wasi:clocks/monotonic-clock"]
        may "know the time of day";
    /// Random numbers.
    wasi Random random "random" ["wasi:random/random", "wasi:random/insecure"]
        may "use random numbers";
    /// The folders that the policy names. Files have times, in the type of the clock's interface.
    wasi Files files "files" ["wasi:filesystem/types", "wasi:filesystem/preopens", "wasi:clocks/wall-clock"]
        may "read folders of the host, and change those for which you allow it";
} }; }
