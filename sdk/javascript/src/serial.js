import wit from "platform:supervisor/serial@1.4.0";

import { answers, bytesOf } from "./capability.js";
import { BadGateway, Conflict } from "./errors.js";

const answering = answers({ "not-found": BadGateway, busy: Conflict, other: BadGateway });

export class Port {
  #port;

  constructor(port) {
    this.#port = port;
  }

  static open = answering(
    async (name, { baud, dataBits = 8, parity = "none", stopBits = 1 }) =>
      new Port(await wit.Port.open(name, { baud, dataBits, parity, stopBits })),
  );

  read = answering((most, milliseconds) => this.#port.read(most, milliseconds));

  write = answering((bytes) => this.#port.write(bytesOf(bytes)));

  close() {
    this.#port[Symbol.dispose]();
  }
}
