import wit from "platform:supervisor/i2c@1.4.0";

import { answers, bytesOf } from "./capability.js";
import { BadGateway, Conflict } from "./errors.js";

const answering = answers({ "not-found": BadGateway, busy: Conflict, "no-answer": BadGateway, other: BadGateway });

export const writeRead = answering((name, bytes, readLength) => wit.writeRead(name, bytesOf(bytes), readLength));

export const readByte = answering((name, register) => wit.readByte(name, register));

export const readWord = answering((name, register) => wit.readWord(name, register));

export const writeByte = answering((name, register, value) => wit.writeByte(name, register, value));

export const writeWord = answering((name, register, value) => wit.writeWord(name, register, value));
