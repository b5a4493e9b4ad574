"""Chips on I2C buses, under the names that the policy gives them. Capability `i2c`."""

from wit_world.imports import i2c as wit

from .capability import answers, bytes_of, whole_number
from .errors import BadGateway, Conflict

_answers = answers(NotFound=BadGateway, Busy=Conflict, NoAnswer=BadGateway, Other=BadGateway)


@_answers
async def write_read(name: str, data: bytes, read_length: int) -> bytes:
    """Writes these bytes (at most 4096), and reads `read_length` bytes (at most 4096) in the same transfer::

        high, low = await i2c.write_read("sensor", b"\\x00", 2)
    """
    # A list of registers is accepted, too.
    content = bytes(data) if isinstance(data, list | tuple) else bytes_of(data)
    return await wit.write_read(name, content, whole_number(read_length, 32))


@_answers
async def read_byte(name: str, register: int) -> int:
    """Reads a register of one byte, with the SMBus command for it."""
    return await wit.read_byte(name, whole_number(register, 8))


@_answers
async def read_word(name: str, register: int) -> int:
    """Reads a register of two bytes, with the SMBus command for it: the low byte comes first."""
    return await wit.read_word(name, whole_number(register, 8))


@_answers
async def write_byte(name: str, register: int, value: int) -> None:
    """Writes a register of one byte, with the SMBus command for it."""
    await wit.write_byte(name, whole_number(register, 8), whole_number(value, 8))


@_answers
async def write_word(name: str, register: int, value: int) -> None:
    """Writes a register of two bytes, with the SMBus command for it: the low byte comes first."""
    await wit.write_word(name, whole_number(register, 8), whole_number(value, 16))
