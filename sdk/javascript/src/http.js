import wit from "platform:supervisor/http@1.4.0";

import { answers } from "./capability.js";
import { BadGateway } from "./errors.js";
import { bytesOf } from "./interface-values.js";
import { WholeAnswer } from "./whole-answer.js";

const answering = answers({ unreachable: BadGateway, "too-large": BadGateway });

/** Sends a request to another host, and returns the whole response. */
export const send = answering(async (url, { method = "GET", headers = {}, body = "" } = {}) => {
  const fields = Object.entries(headers).map(([name, value]) => [name, bytesOf(String(value))]);
  const answer = await wit.send({ method, url, headers: fields, body: bytesOf(body) });
  return new HttpResponse(answer);
});

class HttpResponse extends WholeAnswer {
  constructor({ status, headers, body }) {
    super("the other host", status, body);
    this.headers = new Map(headers.map(([name, value]) => [name, new TextDecoder().decode(value)]));
  }
}
