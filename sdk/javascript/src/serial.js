import wit from "platform:supervisor/serial@1.4.0";

import { answers } from "./capability.js";
import { BadGateway, Conflict } from "./errors.js";
import { bytesOf, milliseconds, wholeNumber } from "./interface-values.js";

const answering = answers({ "not-found": BadGateway, busy: Conflict, other: BadGateway });

export class Port {
  #port;

  constructor(port) {
    this.#port = port;
  }

  static open = answering(
    async (name, { baud, dataBits = 8, parity = "none", stopBits = 1 }) =>
      new Port(
        await wit.Port.open(name, {
          baud: wholeNumber(baud, 32),
          dataBits: wholeNumber(dataBits, 8),
          parity,
          stopBits: wholeNumber(stopBits, 8),
        }),
      ),
  );

  read = answering(async (most, wait) => this.#port.read(wholeNumber(most, 32), milliseconds(wait, 32)));

  write = answering(async (bytes) => this.#port.write(bytesOf(bytes)));

  close() {
    this.#port[Symbol.dispose]();
  }
}
