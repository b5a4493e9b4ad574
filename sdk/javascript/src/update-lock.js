import wit from "platform:supervisor/update-lock@1.4.0";

import { answers } from "./capability.js";
import { Locked, Unavailable } from "./errors.js";
import { boolean } from "./interface-values.js";

const answering = answers({ locked: Locked, other: Unavailable });

export class AllLocks {
  #lock;

  constructor(lock) {
    this.#lock = lock;
  }

  static acquire = answering(async ({ force = false } = {}) => new AllLocks(await wit.Lock.acquireAll(boolean(force))));

  release() {
    this.#lock[Symbol.dispose]();
  }
}
