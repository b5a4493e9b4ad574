//! The typed actions `identify`, `boot-config` and `proxy-redirector`, provided by plugins in other languages than
//! Rust. The projects of `events.rs` contain the providers, because building one takes most of the time.

use std::time::Duration;

use plugin_test_host::RunningHost;
use plugin_test_host::protocol::{
    BootSetting, DnsRemote, Proxy, ProxyAnswer, ProxyCall, ProxyError, ProxyKind, ProxyState,
    Redirection,
};

use crate::author::Author;
use crate::languages::can_build;

/// The store stands for the lamp, for the boot configuration and for that of the proxy.
const JAVASCRIPT: &str = r#"
import { BadRequest, identifyWindow, timer } from "supervisor-sdk";

const GPU_MEM = "HOST_CONFIG_gpu_mem";

export async function blink() {
  if ((await store.getText("gpu_mem")) === "0") throw new Unavailable("there is no memory for the lamp");
  while (identifyWindow.remaining() > 0) await timer.sleep(20);
}

export const firmware = {
  async get() {
    return [{ name: GPU_MEM, value: (await store.getText("gpu_mem")) ?? "64" }];
  },
  async compare(target) {
    const [{ value }] = await this.get();
    const names = (settings) => settings.map((setting) => setting.name);
    return {
      changes: names(target.filter((setting) => setting.name === GPU_MEM && setting.value !== value)),
      refused: target.filter((setting) => setting.value === "odd").map(({ name }) => ({ name, reason: "it is odd" })),
      foreign: names(target.filter((setting) => setting.name !== GPU_MEM)),
      needsReboot: true,
    };
  },
  async set(target) {
    if (target.length === 0) throw new Unavailable("`config.txt` is missing");
    const comparison = await this.compare(target);
    if (comparison.refused.length === 0) await store.set("gpu_mem", target[0].value);
    return comparison;
  },
};

export const redirector = {
  async get() {
    const line = await store.getText("proxy");
    if (line === undefined) return "direct";
    if (line.includes("broken")) return { unusable: "the port is missing" };
    return {
      proxy: { kind: "http-connect", address: line, port: 3128, login: "ada" },
      dns: { address: "10.0.0.53", port: 53 },
    };
  },
  async set(target) {
    if (target === undefined) return store.delete("proxy");
    const { proxy, dns } = target;
    if (proxy.address === "odd") throw new BadRequest("`odd` is not an address");
    const parts = [proxy.kind, proxy.address, proxy.port, proxy.login, proxy.password, dns?.address, dns?.port];
    await store.set("proxy", parts.map((part) => part ?? "-").join(" "));
  },
  async noProxy() {
    return ((await store.getText("no-proxy")) ?? "10.0.0.0/8").split(" ");
  },
  async setNoProxy(addresses) {
    await store.set("no-proxy", addresses.join(" "));
  },
  async apply() {
    if ((await store.getText("proxy")) === undefined) throw new Unavailable("there is nothing to apply");
  },
};
"#;

const PYTHON: &str = r#"

from supervisor_sdk import BadRequest, boot_config, identify_window, proxy_redirector, timer
from supervisor_sdk.boot_config import Comparison, Refusal, Setting
from supervisor_sdk.proxy_redirector import Direct, DnsRemote, Proxy, Redirection, Unusable

GPU_MEM = "HOST_CONFIG_gpu_mem"


async def stored(key: str, otherwise: str) -> str:
    return (await store.get(key) or otherwise.encode()).decode()


async def blink():
    if await stored("gpu_mem", "64") == "0":
        raise Unavailable("there is no memory for the lamp")
    while identify_window.remaining() > 0:
        await timer.sleep(0.02)


class Firmware(boot_config.Provider):
    async def get(self):
        return [Setting(GPU_MEM, await stored("gpu_mem", "64"))]

    async def compare(self, target: list[Setting]):
        [now] = await self.get()
        return Comparison(
            [setting.name for setting in target if setting.name == GPU_MEM and setting != now],
            needs_reboot=True,
            refused=[Refusal(setting.name, "it is odd") for setting in target if setting.value == "odd"],
            foreign=[setting.name for setting in target if setting.name != GPU_MEM],
        )

    async def set(self, target: list[Setting]):
        if not target:
            raise Unavailable("`config.txt` is missing")
        comparison = await self.compare(target)
        if not comparison.refused:
            await store.set("gpu_mem", target[0].value)
        return comparison


class Redirector(proxy_redirector.Provider):
    async def get(self):
        line = await stored("proxy", "")
        if not line:
            return Direct()
        if "broken" in line:
            return Unusable("the port is missing")
        return Redirection(Proxy("http-connect", line, 3128, login="ada"), DnsRemote("10.0.0.53", 53))

    async def set(self, target: Redirection | None):
        if target is None:
            await store.delete("proxy")
            return
        proxy, dns = target.proxy, target.dns
        if proxy.address == "odd":
            raise BadRequest("`odd` is not an address")
        parts = [proxy.kind, proxy.address, proxy.port, proxy.login, proxy.password, dns and dns.address, dns and dns.port]
        await store.set("proxy", " ".join("-" if part is None else str(part) for part in parts))

    async def no_proxy(self):
        return (await stored("no-proxy", "10.0.0.0/8")).split(" ")

    async def set_no_proxy(self, addresses: list[str]):
        await store.set("no-proxy", " ".join(addresses))

    async def apply(self):
        if not await stored("proxy", ""):
            raise Unavailable("there is nothing to apply")
"#;

const C: &str = r#"

#include "boot_config.h"
#include "identify.h"
#include "proxy_redirector.h"

#define GPU_MEM "HOST_CONFIG_gpu_mem"

static const char *stored(const char *key) {
    store_value_t value;
    if (!store_get(key, &value)) abort();
    return value.bytes;
}

static const char *gpu_mem(void) {
    const char *value = stored("gpu_mem");
    return value != NULL ? value : "64";
}

identify_result_t blink(void) {
    if (strcmp(gpu_mem(), "0") == 0) return identify_errorf("there is no %s for the lamp", "memory");
    while (identify_remaining_ms() > 0) platform_supervisor_timer_sleep(20);
    return identify_done();
}

static boot_settings_result_t get_settings(void) {
    boot_setting_t setting = {.name = GPU_MEM, .value = gpu_mem()};
    return boot_settings(&setting, 1);
}

static boot_comparison_t comparison_of(const boot_setting_t *target, size_t count) {
    const char **changes = calloc(count, sizeof *changes), **foreign = calloc(count, sizeof *foreign);
    boot_refusal_t *refused = calloc(count, sizeof *refused);
    boot_comparison_t comparison = {.changes = changes, .foreign = foreign, .refused = refused, .needs_reboot = true};
    for (size_t index = 0; index < count; index++) {
        const char *name = target[index].name, *value = target[index].value;
        if (strcmp(name, GPU_MEM) != 0) {
            foreign[comparison.foreign_count++] = name;
        } else if (strcmp(value, gpu_mem()) != 0) {
            changes[comparison.changes_count++] = name;
        }
        if (strcmp(value, "odd") == 0) {
            refused[comparison.refused_count++] = (boot_refusal_t){.name = name, .reason = "it is odd"};
        }
    }
    return comparison;
}

static boot_comparison_result_t compare(const boot_setting_t *target, size_t count) {
    return boot_comparison(comparison_of(target, count));
}

static boot_comparison_result_t set_settings(const boot_setting_t *target, size_t count) {
    if (count == 0) return boot_comparison_errorf("`%s` is missing", "config.txt");
    boot_comparison_t comparison = comparison_of(target, count);
    if (comparison.refused_count == 0 && !store_set("gpu_mem", store_textf("%s", target[0].value))) {
        return boot_comparison_errorf("%s", store_error());
    }
    return boot_comparison(comparison);
}

const boot_configurator_t firmware = {.get = get_settings, .compare = compare, .set = set_settings};

static proxy_state_result_t get_proxy(void) {
    const char *line = stored("proxy");
    if (line == NULL) return proxy_direct();
    if (strstr(line, "broken") != NULL) return proxy_unusablef("the %s is missing", "port");
    return proxy_redirected((redirection_t){
        .kind = PROXY_HTTP_CONNECT, .address = line, .port = 3128, .login = "ada", .dns_address = "10.0.0.53", .dns_port = 53});
}

static const char *shown(const char *text) {
    return text != NULL ? text : "-";
}

static proxy_result_t set_proxy(const redirection_t *target) {
    if (target == NULL) return store_delete("proxy") ? proxy_done() : proxy_errorf("%s", store_error());
    if (strcmp(target->address, "odd") == 0) return proxy_invalidf("`%s` is not an address", target->address);
    static const char *kinds[] = {"socks4", "socks5", "http-connect", "http-relay"};
    char dns_port[8] = "-";
    if (target->dns_address != NULL) snprintf(dns_port, sizeof dns_port, "%d", target->dns_port);
    store_value_t line = store_textf("%s %s %d %s %s %s %s", kinds[target->kind], target->address, target->port,
                                     shown(target->login), shown(target->password), shown(target->dns_address), dns_port);
    return store_set("proxy", line) ? proxy_done() : proxy_errorf("%s", store_error());
}

static proxy_addresses_result_t no_proxy(void) {
    const char *line = stored("no-proxy");
    const char *addresses[8] = {"10.0.0.0/8"};
    if (line == NULL) return proxy_addresses(addresses, 1);
    size_t count = 0;
    char *rest = strdup(line);
    for (char *word = strtok(rest, " "); word != NULL && count < 8; word = strtok(NULL, " ")) addresses[count++] = word;
    return proxy_addresses(addresses, count);
}

static proxy_result_t set_no_proxy(const char *const *addresses, size_t count) {
    char line[256] = "";
    for (size_t index = 0; index < count; index++) {
        if (index > 0) strncat(line, " ", sizeof line - strlen(line) - 1);
        strncat(line, addresses[index], sizeof line - strlen(line) - 1);
    }
    return store_set("no-proxy", store_textf("%s", line)) ? proxy_done() : proxy_errorf("%s", store_error());
}

static proxy_result_t apply(void) {
    return stored("proxy") != NULL ? proxy_done() : proxy_errorf("there is %s to apply", "nothing");
}

const proxy_redirector_t redirector = {
    .get = get_proxy, .set = set_proxy, .no_proxy = no_proxy, .set_no_proxy = set_no_proxy, .apply = apply};
"#;

const GO: &str = r#"
const gpuMem = "HOST_CONFIG_gpu_mem"

func stored(key, otherwise string) string {
	value, err := store.Get(key)
	if err != nil {
		panic(err)
	}
	if value == nil {
		return otherwise
	}
	return string(value)
}

func blink() error {
	if stored("gpu_mem", "64") == "0" {
		return supervisor.Unavailable("there is no memory for the lamp")
	}
	for identify.Remaining() > 0 {
		timer.Sleep(20 * time.Millisecond)
	}
	return nil
}

type firmware struct{}

func (firmware) Get() ([]bootconfig.Setting, error) {
	return []bootconfig.Setting{{Name: gpuMem, Value: stored("gpu_mem", "64")}}, nil
}

func (firmware) Compare(target []bootconfig.Setting) (bootconfig.Comparison, error) {
	comparison := bootconfig.Comparison{NeedsReboot: true}
	for _, setting := range target {
		switch {
		case setting.Name != gpuMem:
			comparison.Foreign = append(comparison.Foreign, setting.Name)
		case setting.Value != stored("gpu_mem", "64"):
			comparison.Changes = append(comparison.Changes, setting.Name)
		}
		if setting.Value == "odd" {
			comparison.Refused = append(comparison.Refused, bootconfig.Refusal{Name: setting.Name, Reason: "it is odd"})
		}
	}
	return comparison, nil
}

func (f firmware) Set(target []bootconfig.Setting) (bootconfig.Comparison, error) {
	if len(target) == 0 {
		return bootconfig.Comparison{}, supervisor.Unavailable("`config.txt` is missing")
	}
	comparison, err := f.Compare(target)
	if err == nil && len(comparison.Refused) == 0 {
		err = store.Set("gpu_mem", []byte(target[0].Value))
	}
	return comparison, err
}

type redirector struct{}

func (redirector) Get() (proxyredirector.State, error) {
	line := stored("proxy", "")
	if line == "" {
		return proxyredirector.Direct{}, nil
	}
	if strings.Contains(line, "broken") {
		return proxyredirector.Unusable{Reason: "the port is missing"}, nil
	}
	return proxyredirector.Redirection{
		Proxy: proxyredirector.Proxy{Kind: proxyredirector.HTTPConnect, Address: line, Port: 3128, Login: "ada"},
		DNS:   &proxyredirector.DNSRemote{Address: "10.0.0.53", Port: 53},
	}, nil
}

func (redirector) Set(target *proxyredirector.Redirection) error {
	if target == nil {
		return store.Delete("proxy")
	}
	proxy := target.Proxy
	if proxy.Address == "odd" {
		return supervisor.BadRequest("`odd` is not an address")
	}
	address, port := "", ""
	if target.DNS != nil {
		address, port = target.DNS.Address, strconv.Itoa(int(target.DNS.Port))
	}
	parts := []string{string(proxy.Kind), proxy.Address, strconv.Itoa(int(proxy.Port)), proxy.Login, proxy.Password, address, port}
	for index := range parts {
		parts[index] = cmp.Or(parts[index], "-")
	}
	return store.Set("proxy", []byte(strings.Join(parts, " ")))
}

func (redirector) NoProxy() ([]string, error) {
	return strings.Split(stored("no-proxy", "10.0.0.0/8"), " "), nil
}

func (redirector) SetNoProxy(addresses []string) error {
	return store.Set("no-proxy", []byte(strings.Join(addresses, " ")))
}

func (redirector) Apply() error {
	if stored("proxy", "") == "" {
		return errors.New("there is nothing to apply")
	}
	return nil
}
"#;

/// Returns the part of a plugin's source in this language, which follows that of `providers.rs`.
pub(crate) fn source(language: &str) -> String {
    match language {
        "c" => C.to_owned(),
        "go" => GO.to_owned(),
        "javascript" => JAVASCRIPT.to_owned(),
        "typescript" => typescript(),
        _ => PYTHON.to_owned(),
    }
}

/// Returns the part in TypeScript, with the types that the compiler demands.
pub(crate) fn typescript() -> String {
    JAVASCRIPT
        .replace(
            "import {",
            "import { type BootConfigProvider, type BootSetting, type ProxyRedirectorProvider,",
        )
        .replace("firmware =", "firmware: BootConfigProvider =")
        .replace("redirector =", "redirector: ProxyRedirectorProvider =")
        .replace("(settings)", "(settings: BootSetting[])")
        .replace("refused.length", "refused?.length")
}

/// The imports of the part in Go: of its own library, and of the SDK.
pub(crate) const GO_IMPORTS: [&str; 2] = [
    "\t\"cmp\"\n\t\"errors\"\n\t\"strings\"\n",
    "\t\"supervisor/bootconfig\"\n\t\"supervisor/identify\"\n\t\"supervisor/proxyredirector\"\n\t\"supervisor/timer\"\n",
];

/// Returns the lines of `[provides]` in `plugin.toml`.
pub(crate) fn declarations(language: &str) -> &'static str {
    match language {
        "python" => {
            "identify = \"blink\"\nboot-config = \"Firmware\"\nproxy-redirector = \"Redirector\"\n"
        }
        _ => {
            "identify = \"blink\"\nboot-config = \"firmware\"\nproxy-redirector = \"redirector\"\n"
        }
    }
}

const GPU_MEM: &str = "HOST_CONFIG_gpu_mem";

/// Calls each function of the actions as the device does.
pub(crate) async fn check(host: &RunningHost) {
    let second = Duration::from_secs(1);
    assert_eq!(host.identify_for(second).await, Ok(()));
    boot_config(host).await;
    let dark = host.identify_for(second).await.unwrap_err();
    assert_eq!(dark, "there is no memory for the lamp");
    proxy_redirector(host).await;
}

async fn boot_config(host: &RunningHost) {
    let value = async || host.boot_settings().await.unwrap();
    let with = |value: &str| vec![BootSetting::from((GPU_MEM, value))];
    assert_eq!(value().await, with("64"));
    let target = [(GPU_MEM, "128"), ("HOST_CONFIG_é", "odd")].map(BootSetting::from);
    for comparison in [
        host.compare_boot_config(target.to_vec()).await.unwrap(),
        // It refuses a setting, and writes nothing.
        host.set_boot_config(target.to_vec()).await.unwrap(),
    ] {
        assert_eq!(comparison.changes, [GPU_MEM]);
        let refused = ("HOST_CONFIG_é".to_owned(), "it is odd".to_owned());
        assert_eq!(comparison.refused, [refused]);
        assert_eq!(comparison.foreign, ["HOST_CONFIG_é"]);
        assert!(comparison.needs_reboot);
    }
    assert_eq!(value().await, with("64"));
    let written = host.set_boot_config(with("0")).await.unwrap();
    assert_eq!(written.changes, [GPU_MEM]);
    assert_eq!((written.refused.len(), written.foreign.len()), (0, 0));
    assert_eq!(value().await, with("0"));
    let error = host.set_boot_config(Vec::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "`config.txt` is missing");
}

async fn proxy_redirector(host: &RunningHost) {
    let state = async || match host.call_proxy_redirector(ProxyCall::Get).await {
        Ok(ProxyAnswer::State(state)) => state,
        other => panic!("it has a state: {other:?}"),
    };
    let set = async |target| {
        host.call_proxy_redirector(ProxyCall::Set(target))
            .await
            .map(drop)
    };
    let redirection = |address: &str| Redirection {
        proxy: Proxy {
            kind: ProxyKind::HttpRelay,
            address: address.to_owned(),
            port: 8080,
            login: None,
            password: Some("secret".to_owned()),
        },
        dns: Some(DnsRemote {
            address: "10.0.0.1".to_owned(),
            port: 54,
        }),
    };
    assert_eq!(state().await, ProxyState::Direct);
    let nothing = host.call_proxy_redirector(ProxyCall::Apply).await;
    let nothing_to_apply = ProxyError::Other("there is nothing to apply".to_owned());
    assert_eq!(nothing, Err(nothing_to_apply));
    let odd = ProxyError::Invalid("`odd` is not an address".to_owned());
    assert_eq!(set(Some(redirection("odd"))).await, Err(odd));

    set(Some(redirection("10.0.0.9"))).await.unwrap();
    let applied = host.call_proxy_redirector(ProxyCall::Apply).await;
    assert_eq!(applied, Ok(ProxyAnswer::Done));
    let expected = Redirection {
        proxy: Proxy {
            kind: ProxyKind::HttpConnect,
            address: "http-relay 10.0.0.9 8080 - secret 10.0.0.1 54".to_owned(),
            port: 3128,
            login: Some("ada".to_owned()),
            password: None,
        },
        dns: Some(DnsRemote {
            address: "10.0.0.53".to_owned(),
            port: 53,
        }),
    };
    assert_eq!(state().await, ProxyState::Redirected(expected));
    let without_dns = Redirection {
        dns: None,
        ..redirection("broken")
    };
    set(Some(without_dns)).await.unwrap();
    let unusable = ProxyState::Unusable("the port is missing".to_owned());
    assert_eq!(state().await, unusable);
    set(None).await.unwrap();
    assert_eq!(state().await, ProxyState::Direct);

    let addresses = |addresses: &[&str]| {
        let addresses = addresses.iter().map(|address| (*address).to_owned());
        addresses.collect::<Vec<_>>()
    };
    let no_proxy = async || host.call_proxy_redirector(ProxyCall::NoProxy).await;
    let before = ProxyAnswer::Addresses(addresses(&["10.0.0.0/8"]));
    assert_eq!(no_proxy().await, Ok(before));
    let two = addresses(&["10.0.0.1", "192.168.0.0/16"]);
    let written = host.call_proxy_redirector(ProxyCall::SetNoProxy(two.clone()));
    assert_eq!(written.await, Ok(ProxyAnswer::Done));
    assert_eq!(no_proxy().await, Ok(ProxyAnswer::Addresses(two)));
}

/// Calls the actions in a file of tests, in the project of `events.rs` in C, and then checks that a device would load
/// it.
pub(crate) fn file_of_tests_calls_them(author: &Author) {
    author.write(
        "acme-rails/test/hello.toml",
        r#"
[[action]]
identify = { seconds = 1 }

[[action]]
boot_config = { compare = { HOST_CONFIG_gpu_mem = "128", HOST_CONFIG_x = "odd" } }
answer = { json = { changes = ["HOST_CONFIG_gpu_mem"], refused = { HOST_CONFIG_x = "it is odd" }, foreign = ["HOST_CONFIG_x"], needs_reboot = true } }

[[action]]
boot_config = { set = { HOST_CONFIG_gpu_mem = "0" } }
answer = { json = { changes = ["HOST_CONFIG_gpu_mem"], needs_reboot = true } }

[[action]]
boot_config = "get"
answer = { json = { HOST_CONFIG_gpu_mem = "0" } }

[[action]]
identify = { seconds = 1 }
answer = { failed = "there is no memory for the lamp" }

[[action]]
proxy_redirector = { set = { proxy = { kind = "socks5", address = "10.0.0.9", port = 1080, password = "p" } } }

[[action]]
proxy_redirector = "get"
answer = { json = { proxy = { kind = "http-connect", address = "socks5 10.0.0.9 1080 - p - -", port = 3128, login = "ada" }, dns = { address = "10.0.0.53", port = 53 } } }

[[action]]
proxy_redirector = { set = { proxy = { kind = "socks5", address = "odd", port = 1080 } } }
answer = { refused = "`odd` is not an address" }

[[action]]
proxy_redirector = { set = {} }

[[action]]
proxy_redirector = "get"
answer = { json = "direct" }

[[action]]
proxy_redirector = { set-no-proxy = ["10.0.0.1"] }

[[action]]
proxy_redirector = "no-proxy"
answer = { json = ["10.0.0.1"] }

[[action]]
proxy_redirector = "apply"
answer = { failed = "there is nothing to apply" }
"#,
    );
    let built = "test acme-rails/acme-rails.wasm --project acme-rails";
    let passed = author.run(built).succeeds();
    assert!(passed.out.contains("13 passed, 0 failed"), "{}", passed.out);

    author.edit(
        "acme-rails/plugin.toml",
        "version = \"0.1.0\"\n",
        "version = \"0.1.0\"\nboards = [\"acme-*\"]\n",
    );
    author.run_in("acme-rails", "check").succeeds();
}

#[test]
fn the_build_reports_a_missing_or_undeclared_provider_of_an_action() {
    for (language, source, text, place) in [
        (
            "c",
            "src/plugin.c",
            "#include \"identify.h\"\n",
            "src/plugin.c:2",
        ),
        (
            "c",
            "src/plugin.c",
            "#include \"boot_config.h\"\n",
            "src/plugin.c:2",
        ),
        (
            "go",
            "src/plugin.go",
            "import \"supervisor/proxyredirector\"\n",
            "src/plugin.go:4",
        ),
        (
            "python",
            "src/plugin.py",
            "from supervisor_sdk.proxy_redirector import Provider\n",
            "src/plugin.py:2",
        ),
        (
            "python",
            "src/plugin.py",
            "from supervisor_sdk import identify_window\n",
            "src/plugin.py:2",
        ),
        (
            "typescript",
            "src/plugin.ts",
            "import { identifyWindow } from \"supervisor-sdk\";\n",
            "src/plugin.ts:2",
        ),
    ] {
        let author = Author::with_project(language);
        let file = format!("rails/{source}");
        let written = author.read(&file);
        let (first, rest) = match language {
            "go" => written.split_once("package main\n\n").unwrap(),
            _ => written.split_once('\n').unwrap(),
        };
        let head = if language == "go" {
            format!("{first}package main\n\n")
        } else {
            format!("{first}\n")
        };
        author.write(&file, &format!("{head}{text}{rest}"));
        let built = author.run_in("rails", "build").fails();
        let expected = format!("error: {place} uses the SDK's part for providers of `");
        assert!(built.err.contains(&expected), "{}", built.err);
    }
    // In Python, the module that provides this action also calls it.
    let author = Author::with_project("python");
    let import = "from supervisor_sdk import proxy_redirector\n";
    author.write(
        "rails/src/plugin.py",
        &format!("{import}\n\ndef hello():\n    return proxy_redirector\n"),
    );
    let built = author.run_in("rails", "build").fails();
    let expected = "does not name one: add `proxy-redirector = \"CLASS\"`; to call the action instead, add \
                    `proxy-redirector = \"why\"` to [capabilities]\n";
    assert!(built.err.ends_with(expected), "{}", built.err);
    for language in ["c", "go", "javascript", "typescript", "python"] {
        if can_build(language) {
            let author = Author::with_project(language);
            author.append("rails/plugin.toml", "\n[provides]\nidentify = \"blink\"\n");
            let built = author.run_in("rails", "build").fails();
            let expected =
                "`identify` in [provides] names the function \"blink\", which src/plugin.";
            assert!(built.err.contains(expected), "{}", built.err);
        }
    }
    let author = Author::with_project("javascript");
    author.append("rails/plugin.toml", "\n[provides]\nidentify = \"hello\"\n");
    author.edit(
        "rails/plugin.toml",
        "[capabilities]\n",
        "[capabilities]\nidentify = \"r\"\n",
    );
    let built = author.run_in("rails", "build").fails();
    let expected = "cannot both provide `identify` and ask for the capability of that name";
    assert!(built.err.contains(expected), "{}", built.err);
}
