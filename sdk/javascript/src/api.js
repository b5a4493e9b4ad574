import wit from "platform:supervisor/api@1.4.0";

import { answers, bytesOf } from "./capability.js";
import { BadGateway, Unavailable } from "./errors.js";

const answering = answers({ unavailable: Unavailable });

/** Sends a request to the device's own API, and answers its whole response. */
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

class ApiResponse {
  constructor({ status, contentType, body }) {
    this.status = status;
    this.contentType = contentType ?? undefined;
    this.body = body;
  }

  get ok() {
    return this.status >= 200 && this.status < 300;
  }

  text() {
    return new TextDecoder().decode(this.body);
  }

  json() {
    if (!this.ok) throw new BadGateway(`the device's own API answered ${this.status}`);
    try {
      return JSON.parse(this.text());
    } catch (error) {
      throw new BadGateway(`an unexpected answer: ${error.message}`);
    }
  }
}
