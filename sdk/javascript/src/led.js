import wit from "platform:supervisor/led@1.4.0";

import { answers } from "./capability.js";
import { Conflict, NotFound } from "./errors.js";
import { wholeNumber } from "./interface-values.js";

const answering = answers({ "not-found": NotFound, busy: Conflict });

export const names = answering(() => wit.names());

export class Light {
  #light;

  constructor(light) {
    this.#light = light;
  }

  static open = answering((name) => new Light(wit.Light.open(name)));

  get max() {
    return this.#light.max();
  }

  set = answering((brightness) => this.#light.set(wholeNumber(Math.trunc(brightness), 32)));

  on() {
    this.set(0xffff_ffff);
  }

  off() {
    this.set(0);
  }

  close() {
    this.#light[Symbol.dispose]();
  }
}
