"""Serial ports that the policy names. Capability `serial`."""

from wit_world.imports import serial as wit

from .capability import answers, bytes_of, milliseconds, whole_number
from .errors import BadGateway, Conflict

_answers = answers(NotFound=BadGateway, Busy=Conflict, Other=BadGateway)


class Port:
    """A port that nobody else can open for as long as the `async with` block lasts::

        async with serial.Port("/dev/ttyUSB0", baud=9600) as port:
            await port.write(b"READ\\r\\n")
            answer = await port.read(64, seconds=2)

    `baud` is from 50 to 4,000,000 bits per second, `data_bits` from 5 to 8, `parity` is `none`, `even` or `odd`, and
    `stop_bits` is 1 or 2. The port is raw, and without flow control.
    """

    def __init__(self, name: str, *, baud: int, data_bits: int = 8, parity: str = "none", stop_bits: int = 1):
        self._name = name
        self._settings = wit.Settings(
            whole_number(baud, 32), whole_number(data_bits, 8), wit.Parity[parity.upper()], whole_number(stop_bits, 8)
        )

    @_answers
    async def __aenter__(self) -> "Port":
        self._port = await wit.Port.open(self._name, self._settings)
        return self

    async def __aexit__(self, *raised) -> None:
        self._port.__exit__(*raised)

    @_answers
    async def read(self, most: int, seconds: float) -> bytes:
        """Waits until data has been received, and returns at most `most` bytes of it (65,536 at most). Returns nothing
        if the time has passed (60 s at most)."""
        return await self._port.read(whole_number(most, 32), milliseconds(seconds, 32))

    @_answers
    async def write(self, data: bytes) -> None:
        """Writes all bytes, at most 64 KiB. Returns once the kernel has them."""
        await self._port.write(bytes_of(data))
