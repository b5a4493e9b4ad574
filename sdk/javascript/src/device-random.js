/** Connects `Math.random` and `crypto` with the device. In the bundle only if `plugin.toml` asks for `random`. */

import wit from "wasi:random/random@0.2.6";

import { provideRandomBytes } from "./randomness.js";

provideRandomBytes((length) => wit.getRandomBytes(length));
