import wit from "platform:supervisor/i2c@1.4.0";

import { answers } from "./capability.js";
import { BadGateway, Conflict } from "./errors.js";
import { bytesOf, wholeNumber } from "./interface-values.js";

const answering = answers({ "not-found": BadGateway, busy: Conflict, "no-answer": BadGateway, other: BadGateway });

const byte = (value) => wholeNumber(value, 8);
const word = (value) => wholeNumber(value, 16);
// A list of registers is accepted, too.
const contentOf = (value) => (Array.isArray(value) ? Uint8Array.from(value, byte) : bytesOf(value));

export const writeRead = answering(async (name, bytes, readLength) =>
  wit.writeRead(name, contentOf(bytes), wholeNumber(readLength, 32)),
);

export const readByte = answering(async (name, register) => wit.readByte(name, byte(register)));

export const readWord = answering(async (name, register) => wit.readWord(name, byte(register)));

export const writeByte = answering(async (name, register, value) => wit.writeByte(name, byte(register), byte(value)));

export const writeWord = answering(async (name, register, value) => wit.writeWord(name, byte(register), word(value)));
