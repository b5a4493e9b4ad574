import { wholeNumber } from "./interface-values.js";
import { validText } from "./json-text.js";

/** Returns the answer "not now" to a gate: the device asks again after this many seconds, 10 to 900. */
export const postpone = (reason, seconds) => ({ reason: validText(reason), seconds: wholeNumber(seconds, 32) });

/** Returns the answer to the gate for releases that makes the device go back to the last healthy one. */
export const refuse = (reason) => ({ reason: validText(reason), refuses: true });

/** Converts an answer to the form of `wit/events.wit`. */
export function answerOf(answer) {
  if (answer === undefined) return { tag: "go-on" };
  return answer.refuses ? { tag: "refuse", val: answer.reason } : { tag: "postpone", val: answer };
}

const found = (value) => value ?? undefined;

/** Converts an event of `wit/events.wit` to the form that plugins receive. */
export function eventOf({ tag: kind, val }) {
  switch (kind) {
    case "start":
      return { kind, isFirstOfBoot: val };
    case "schedule":
      return { kind, name: val };
    case "services":
      return {
        kind,
        changes: val.map(({ appId, service, status, before }) => ({
          appId: Number(appId),
          service,
          status: found(status),
          before: found(before),
        })),
      };
    case "target":
      return { kind, progress: val };
    case "connection":
      return { kind, isConnected: val };
    case "update-gate":
      return {
        kind,
        update: {
          appId: Number(val.appId),
          appUuid: val.appUuid,
          services: val.services,
          runningCommit: found(val.runningCommit),
          targetCommit: found(val.targetCommit),
        },
      };
    case "health-gate":
      return { kind, release: { ...val, appId: Number(val.appId) } };
    default:
      return { kind: "later", name: val.name, data: JSON.parse(val.data) };
  }
}
