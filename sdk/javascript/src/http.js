import wit from "platform:supervisor/http@1.4.0";

import { answers, bytesOf } from "./capability.js";
import { BadGateway } from "./errors.js";

const answering = answers({ unreachable: BadGateway, "too-large": BadGateway });

/** Sends a request to another host, and answers its whole response. */
export const send = answering(async (url, { method = "GET", headers = {}, body = "" } = {}) => {
  const fields = Object.entries(headers).map(([name, value]) => [name, bytesOf(String(value))]);
  const answer = await wit.send({ method, url, headers: fields, body: bytesOf(body) });
  return new HttpResponse(answer);
});

class HttpResponse {
  constructor({ status, headers, body }) {
    this.status = status;
    this.headers = new Map(headers.map(([name, value]) => [name, new TextDecoder().decode(value)]));
    this.body = body;
  }

  get ok() {
    return this.status >= 200 && this.status < 300;
  }

  text() {
    return new TextDecoder().decode(this.body);
  }

  json() {
    if (!this.ok) throw new BadGateway(`the other host answered ${this.status}`);
    try {
      return JSON.parse(this.text());
    } catch (error) {
      throw new BadGateway(`an unexpected answer: ${error.message}`);
    }
  }
}
