import wit from "platform:supervisor/api@1.4.0";

import { answers } from "./capability.js";
import { Unavailable } from "./errors.js";
import { bytesOf } from "./interface-values.js";
import { WholeAnswer } from "./whole-answer.js";

const answering = answers({ unavailable: Unavailable });

/** Sends a request to the device's own API, and returns the whole response. */
export const send = answering(async (path, { method = "GET", json, contentType, body = "" } = {}) => {
  const isJson = json !== undefined;
  const answer = await wit.send({
    method,
    path,
    contentType: isJson ? "application/json" : contentType,
    body: bytesOf(isJson ? JSON.stringify(json) : body),
  });
  return new ApiResponse(answer);
});

class ApiResponse extends WholeAnswer {
  constructor({ status, contentType, body }) {
    super("the device's own API", status, body);
    this.contentType = contentType ?? undefined;
  }
}
