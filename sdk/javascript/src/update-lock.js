import wit from "platform:supervisor/update-lock@1.4.0";

import { answers, boolean } from "./capability.js";
import { Locked, Unavailable } from "./errors.js";

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
