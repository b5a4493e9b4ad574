import wit from "platform:supervisor/log@1.4.0";

import { validText } from "./json-text.js";

const write = (level) => (message) => wit.write(level, validText(message));

export const trace = write("trace");
export const debug = write("debug");
export const info = write("info");
export const warn = write("warn");
export const error = write("error");
