"""A provider that keeps what it received, and refuses the address `odd`."""

from componentize_py_types import Err

from . import proxy_types

state = proxy_types.ProxyState_Direct()
received = []
failure = None


async def get():
    return state


async def set(target):
    if target is not None and target.proxy.address == "odd":
        raise Err(proxy_types.ProxyError_Invalid("`odd` is not an address"))
    received.append(target)


async def no_proxy():
    return ["10.0.0.0/8"]


async def set_no_proxy(addresses):
    received.append(addresses)


async def apply():
    raise Err(failure)
