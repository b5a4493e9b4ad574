//! Serial ports, and the update locks of all apps.

use super::Capability;

pub(super) const CAPABILITY: Capability = Capability {
    javascript: JAVASCRIPT,
    python: PYTHON,
    reasons: "serial = \"asks the meter\"\nupdate-lock = \"holds updates up while it measures\"\n",
    route: ("POST /v3/measure", "measure"),
    device: "",
    steps: "",
};

const JAVASCRIPT: &str = r#"
import { serial, updateLock } from "supervisor-sdk";

export async function measure({ query }) {
  const locks = await updateLock.AllLocks.acquire();
  const light = led.Light.open("ACT");
  light.on();
  const port = await serial.Port.open(query.port, { baud: 9600 });
  await port.write("READ\n");
  const answer = new TextDecoder().decode(await port.read(64, 20_000));
  const more = await port.read(64, 1);
  const refused = [];
  for (const name of [query.port, "/dev/gone"]) {
    try {
      await serial.Port.open(name, { baud: 9600, dataBits: 7, parity: "even", stopBits: 2 });
    } catch (error) {
      refused.push(error.name);
    }
  }
  port.close();
  light.close();
  locks.release();
  return { answer, more: more.length, refused };
}
"#;

const PYTHON: &str = r#"

from supervisor_sdk import serial, update_lock


async def measure(port: str):
    refused = []
    async with update_lock.AllLocks():
        with led.Light("ACT") as light:
            light.on()
            async with serial.Port(port, baud=9600) as meter:
                await meter.write(b"READ\n")
                answer = await meter.read(64, seconds=20)
                more = await meter.read(64, seconds=0.001)
                for name in [port, "/dev/gone"]:
                    try:
                        async with serial.Port(name, baud=9600, data_bits=7, parity="even", stop_bits=2):
                            pass
                    except Exception as error:
                        refused.append(type(error).__name__)
    return {"answer": answer.decode(), "more": len(more), "refused": refused}
"#;
