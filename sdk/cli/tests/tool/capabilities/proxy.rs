//! The device's transparent proxy, through the plugin that provides `proxy-redirector`.

use super::Capability;

pub(super) const CAPABILITY: Capability = Capability {
    javascript: JAVASCRIPT,
    python: PYTHON,
    reasons: "proxy-redirector = \"sends connections through the site's proxy\"\n",
    route: ("POST /v3/proxy", "proxy"),
    device: "",
    steps: "",
};

const JAVASCRIPT: &str = r#"
import { proxyRedirector } from "supervisor-sdk";

export async function proxy() {
  const before = await proxyRedirector.get();
  await proxyRedirector.set({
    proxy: { kind: "socks5", address: "10.0.0.9", port: 1080, login: "ada", password: "p" },
    dns: { address: "10.0.0.53", port: 53 },
  });
  await proxyRedirector.setNoProxy(["10.0.0.0/8", "192.0.2.7"]);
  await proxyRedirector.apply();
  const written = [await proxyRedirector.get(), await proxyRedirector.noProxy()];
  let refused;
  try {
    await proxyRedirector.setNoProxy(["odd"]);
  } catch (error) {
    refused = `${error.name}: ${error.message}`;
  }
  await proxyRedirector.set(undefined);
  return { before, written, refused, after: await proxyRedirector.get() };
}
"#;

const PYTHON: &str = r#"

from dataclasses import asdict

from supervisor_sdk import proxy_redirector
from supervisor_sdk.proxy_redirector import Direct, DnsRemote, Proxy, Redirection


async def proxy():
    before = await proxy_redirector.get()
    server = Proxy("socks5", "10.0.0.9", 1080, login="ada", password="p")
    await proxy_redirector.set(Redirection(server, DnsRemote("10.0.0.53", 53)))
    await proxy_redirector.set_no_proxy(["10.0.0.0/8", "192.0.2.7"])
    await proxy_redirector.apply()
    written = [asdict(await proxy_redirector.get()), await proxy_redirector.no_proxy()]
    refused = None
    try:
        await proxy_redirector.set_no_proxy(["odd"])
    except Exception as error:
        refused = f"{type(error).__name__}: {error}"
    await proxy_redirector.set(None)
    after = await proxy_redirector.get()
    names = {Direct: "direct"}
    return {"before": names[type(before)], "written": written, "refused": refused, "after": names[type(after)]}
"#;
