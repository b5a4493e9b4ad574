"""The typed actions `identify`, `boot-config` and `proxy-redirector`, without a device."""

import asyncio
import pathlib
import sys
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE / "fakes"), str(HERE.parent)]

from componentize_py_types import Err  # noqa: E402
from supervisor_sdk import BadRequest, Internal, Unavailable, boot_config, proxy_redirector, sealing  # noqa: E402
from supervisor_sdk import handler as sdk  # noqa: E402
from supervisor_sdk.boot_config import Comparison, Refusal, Setting  # noqa: E402
from supervisor_sdk.proxy_redirector import Direct, DnsRemote, Proxy, Redirection, Unusable  # noqa: E402
from wit_world.exports import boot_config as wit_boot  # noqa: E402
from wit_world.imports import log  # noqa: E402
from wit_world.imports import proxy_redirector as wit_redirector  # noqa: E402
from wit_world.imports import proxy_types as wit_proxy  # noqa: E402

# The tests continue to import modules after a call.
sealing.seal = lambda: None


def error_of(call):
    """Returns the error of a call, in the form of the interface."""
    try:
        asyncio.run(call)
    except Err as error:
        return error.value
    raise AssertionError("it succeeds")


class Identify(unittest.TestCase):
    def test_the_function_is_called_and_its_error_is_a_text(self):
        calls = []

        async def blink():
            calls.append("blink")
            return "more than the interface takes"

        def dark():
            raise Unavailable("there is no LED \ud800")

        self.assertIsNone(asyncio.run(sdk.identifier(blink)().identify()))
        self.assertEqual(calls, ["blink"])
        self.assertEqual(error_of(sdk.identifier(dark)().identify()), "there is no LED \ufffd")
        log.lines.clear()
        with self.assertRaises(KeyError):
            asyncio.run(sdk.identifier(lambda: {}["x"])().identify())
        self.assertIn("KeyError: 'x'", log.lines[0][1])

    def test_a_function_that_cannot_be_called_is_refused_at_the_build(self):
        def of(led): ...
        def pieces():
            yield 1

        for function, message in [(of, "no parameters"), (pieces, "yields"), ("blink", "not a function")]:
            with self.assertRaisesRegex(TypeError, message):
                sdk.identifier(function)
        sdk.identifier(lambda led=None: None)


class Firmware:
    calls = []
    settings = [Setting("HOST_CONFIG_a", "\ud800")]
    comparison = Comparison(["HOST_CONFIG_a"], needs_reboot=True)

    def get(self):
        return self.settings

    async def compare(self, target: list[Setting]):
        self.calls.append(target)
        return self.comparison

    async def set(self, target: list[Setting]):
        if not target:
            raise Unavailable("there is no `config.txt`")
        return Comparison([], needs_reboot=False, refused=[Refusal("a", "odd")], foreign=["b"])


class BootConfig(unittest.TestCase):
    def test_each_call_has_the_method_of_its_name(self):
        provider = sdk.boot_configurator(Firmware)()
        self.assertEqual(asyncio.run(provider.get()), [wit_boot.Setting("HOST_CONFIG_a", "\ufffd")])
        target = [wit_boot.Setting("HOST_CONFIG_a", "1")]
        compared = wit_boot.Comparison(["HOST_CONFIG_a"], [], [], True)
        self.assertEqual(asyncio.run(provider.compare(target)), compared)
        self.assertEqual(Firmware.calls, [[Setting("HOST_CONFIG_a", "1")]])
        before = wit_boot.Comparison([], [wit_boot.Refusal("a", "odd")], ["b"], False)
        self.assertEqual(asyncio.run(provider.set(target)), before)
        self.assertEqual(error_of(provider.set([])), "there is no `config.txt`")

    def test_what_the_interface_does_not_take_is_refused_by_the_sdk(self):
        for comparison in [
            Comparison([1], needs_reboot=True),
            Comparison([], needs_reboot="no"),
            Comparison([], needs_reboot=True, refused=[Refusal("a", None)]),
            Comparison([], needs_reboot=True, foreign=[b"a"]),
        ]:
            provider = type("Odd", (Firmware,), {"comparison": comparison})
            with self.assertRaises(TypeError):
                asyncio.run(sdk.boot_configurator(provider)().compare([]))
        provider = type("Odd", (Firmware,), {"settings": [Setting("a", 1)]})
        with self.assertRaises(TypeError):
            asyncio.run(sdk.boot_configurator(provider)().get())

    def test_a_class_without_a_method_is_refused_at_the_build(self):
        class Half(boot_config.Provider):
            async def get(self): ...

        with self.assertRaisesRegex(TypeError, "`Half` provides `boot-config` without the method `compare`"):
            sdk.boot_configurator(Half)


class Redirector:
    calls = []
    state = Direct()

    async def get(self):
        return self.state

    async def set(self, target: Redirection | None):
        if target is not None and target.proxy.address == "odd":
            raise BadRequest("`odd` is not an address")
        self.calls.append(target)

    def no_proxy(self):
        return ["10.0.0.0/8"]

    async def set_no_proxy(self, addresses: list[str]):
        self.calls.append(addresses)

    async def apply(self):
        raise Unavailable("redsocks does not start")


def wit_redirection(address: str) -> wit_proxy.Redirection:
    proxy = wit_proxy.Proxy(wit_proxy.ProxyKind.HTTP_CONNECT, address, 1080, None, "p")
    return wit_proxy.Redirection(proxy, wit_proxy.DnsRemote("dns", 53))


class ProxyRedirector(unittest.TestCase):
    def test_each_call_has_the_method_of_its_name(self):
        provider = sdk.proxy_configurator(Redirector)()
        self.assertEqual(asyncio.run(provider.no_proxy()), ["10.0.0.0/8"])
        asyncio.run(provider.set(wit_redirection("10.0.0.9")))
        asyncio.run(provider.set(None))
        asyncio.run(provider.set_no_proxy(["10.0.0.1"]))
        proxy = Proxy("http-connect", "10.0.0.9", 1080, password="p")
        target = Redirection(proxy, DnsRemote("dns", 53))
        self.assertEqual(Redirector.calls, [target, None, ["10.0.0.1"]])
        self.assertNotIn("'p'", repr(target))

    def test_each_state_has_its_case(self):
        proxy = Proxy("http-connect", "10.0.0.9", 1080, password="p")
        for state, expected in [
            (Direct(), wit_proxy.ProxyState_Direct()),
            (Unusable("no port"), wit_proxy.ProxyState_Unusable("no port")),
            (
                Redirection(proxy, DnsRemote("dns", 53)),
                wit_proxy.ProxyState_Redirected(wit_redirection("10.0.0.9")),
            ),
        ]:
            provider = type("Redirector", (Redirector,), {"state": state})
            self.assertEqual(asyncio.run(sdk.proxy_configurator(provider)().get()), expected)

    def test_an_error_says_whether_a_value_or_the_provider_is_to_blame(self):
        provider = sdk.proxy_configurator(Redirector)()
        invalid = wit_proxy.ProxyError_Invalid("`odd` is not an address")
        self.assertEqual(error_of(provider.set(wit_redirection("odd"))), invalid)
        self.assertEqual(error_of(provider.apply()), wit_proxy.ProxyError_Other("redsocks does not start"))

    def test_what_the_interface_does_not_take_is_refused_by_the_sdk(self):
        for kind, port in [("socks", 1), ("socks5", 65_536), ("socks5", "1")]:
            with self.assertRaises(ValueError):
                Proxy(kind, "10.0.0.9", port)
        with self.assertRaises(ValueError):
            DnsRemote("dns", -1)
        for state in [None, Unusable(7), Redirection(Proxy("socks5", None, 1))]:
            provider = type("Redirector", (Redirector,), {"state": state})
            with self.assertRaises(TypeError):
                asyncio.run(sdk.proxy_configurator(provider)().get())

    def test_a_class_without_a_method_is_refused_at_the_build(self):
        class Half(proxy_redirector.Provider):
            async def get(self): ...

        with self.assertRaisesRegex(TypeError, "`Half` provides `proxy-redirector` without the method `set`"):
            sdk.proxy_configurator(Half)

    def test_a_plugin_without_the_capability_cannot_call_the_action_and_the_error_says_so(self):
        with mock.patch.object(proxy_redirector, "wit", None):
            with self.assertRaisesRegex(ImportError, "`proxy_redirector.get` without asking .* `proxy-redirector = \"why\"`"):
                asyncio.run(proxy_redirector.get())


class CallsOfProxyRedirector(unittest.TestCase):
    def test_the_configuration_is_read(self):
        proxy = Proxy("http-connect", "10.0.0.9", 1080, password="p")
        for state, expected in [
            (wit_proxy.ProxyState_Direct(), Direct()),
            (wit_proxy.ProxyState_Unusable("no port"), Unusable("no port")),
            (wit_proxy.ProxyState_Redirected(wit_redirection("10.0.0.9")), Redirection(proxy, DnsRemote("dns", 53))),
        ]:
            wit_redirector.state = state
            self.assertEqual(asyncio.run(proxy_redirector.get()), expected)
        self.assertEqual(asyncio.run(proxy_redirector.no_proxy()), ["10.0.0.0/8"])

    def test_the_configuration_is_written(self):
        wit_redirector.received.clear()
        proxy = Proxy("http-connect", "10.0.0.9", 1080, password="p")
        asyncio.run(proxy_redirector.set(Redirection(proxy, DnsRemote("dns", 53))))
        asyncio.run(proxy_redirector.set(None))
        asyncio.run(proxy_redirector.set_no_proxy(["10.0.0.1"]))
        self.assertEqual(wit_redirector.received, [wit_redirection("10.0.0.9"), None, ["10.0.0.1"]])

    def test_an_error_of_the_provider_is_one_of_the_sdk(self):
        with self.assertRaisesRegex(BadRequest, "`odd` is not an address"):
            asyncio.run(proxy_redirector.set(Redirection(Proxy("socks5", "odd", 1080))))
        for failure, kind in [(wit_proxy.ProxyError_Unavailable, Unavailable), (wit_proxy.ProxyError_Other, Internal)]:
            wit_redirector.failure = failure("redsocks is missing")
            with self.assertRaisesRegex(kind, "redsocks is missing"):
                asyncio.run(proxy_redirector.apply())

    def test_what_the_interface_does_not_take_is_refused_by_the_sdk(self):
        wit_redirector.received.clear()
        for call in [
            lambda: proxy_redirector.set(Redirection(Proxy("socks5", None, 1))),
            lambda: proxy_redirector.set_no_proxy([7]),
        ]:
            with self.assertRaises(TypeError):
                asyncio.run(call())
        self.assertEqual(wit_redirector.received, [])


if __name__ == "__main__":
    unittest.main()
