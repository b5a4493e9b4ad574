//! GPIO lines and chips on I2C buses.

use super::Capability;

pub(super) const CAPABILITY: Capability = Capability {
    javascript: JAVASCRIPT,
    python: PYTHON,
    reasons: "gpio = \"opens the door\"\ni2c = \"measures\"\n",
    route: ("POST /v3/visits", "visit"),
    device: r#"[gpio]
relay = { direction = "out" }
door = { direction = "in" }

[i2c]
thermometer = { registers = [0x19, 0x80] }
expander = {}
"#,
    steps: STEPS,
};

const JAVASCRIPT: &str = r#"
import { gpio, i2c } from "supervisor-sdk";

export async function visit() {
  await gpio.write("relay", true);
  const edge = await gpio.waitEdge("door", "rising", 30_000);
  await gpio.write("relay", false);
  const late = await gpio.waitEdge("door", "both", 1);
  const refused = [];
  const attempts = [
    () => gpio.read("gate"),
    () => i2c.readByte("gate", 0),
    () => i2c.writeByte("expander", 0, 300),
    // @ts-expect-error
    () => gpio.write("relay", "off"),
  ];
  for (const attempt of attempts) {
    try {
      await attempt();
    } catch (error) {
      refused.push(`${error.name}: ${error.message}`);
    }
  }
  await i2c.writeWord("expander", 2, 0x1234);
  await i2c.writeByte("expander", 4, 0x56);
  const [high, low] = await i2c.writeRead("thermometer", Uint8Array.of(0), 2);
  return {
    isRising: edge.isRising,
    lost: edge.lost,
    hasTime: Number.isInteger(edge.nanoseconds),
    late: late === undefined,
    isOpen: await gpio.read("door"),
    high,
    low,
    byte: await i2c.readByte("expander", 4),
    word: await i2c.readWord("expander", 2),
    refused,
  };
}
"#;

const PYTHON: &str = r#"

from supervisor_sdk import gpio, i2c


async def visit():
    await gpio.write("relay", True)
    edge = await gpio.wait_edge("door", "rising", seconds=30)
    await gpio.write("relay", False)
    late = await gpio.wait_edge("door", "both", seconds=0.001)
    refused = []
    attempts = [
        lambda: gpio.read("gate"),
        lambda: i2c.read_byte("gate", 0),
        lambda: i2c.write_byte("expander", 0, 300),
        lambda: gpio.write("relay", "off"),
    ]
    for attempt in attempts:
        try:
            await attempt()
        except Exception as error:
            refused.append(f"{type(error).__name__}: {error}")
    await i2c.write_word("expander", 2, 0x1234)
    await i2c.write_byte("expander", 4, 0x56)
    high, low = await i2c.write_read("thermometer", b"\x00", 2)
    return {
        "isRising": edge.is_rising,
        "lost": edge.lost,
        "hasTime": isinstance(edge.nanoseconds, int),
        "late": late is None,
        "isOpen": await gpio.read("door"),
        "high": high,
        "low": low,
        "byte": await i2c.read_byte("expander", 4),
        "word": await i2c.read_word("expander", 2),
        "refused": refused,
    }
"#;

const STEPS: &str = r#"
[[i2c]]
set = { thermometer = [0xf5, 0x40] }

[[request]]
post = "/v3/visits"
edges = [{ line = "door", on = true }]
answer = { status = 200, contains = ['"isRising":true', '"lost":0', '"hasTime":true', '"late":true', '"isOpen":true', '"high":245', '"low":64', '"byte":86', '"word":4660', 'gate', '300 is not a whole number from 0 to 255', 'off', 'is neither'] }

[[gpio]]
drive = { door = false }
expect = { relay = false, door = false }

[[i2c]]
expect = { expander = [0x00, 0x00, 0x34, 0x12, 0x56], thermometer = [0xf5, 0x40] }
"#;
