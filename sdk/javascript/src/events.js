/** Makes the answer to a gate that is not open: the device asks again after so many seconds, 10 to 900. */
export const postpone = (reason, seconds) => ({ reason, seconds });

const found = (value) => value ?? undefined;

/** An event of `wit/events.wit` as plugins get it. */
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
    default:
      return { kind: "later", name: val.name, data: JSON.parse(val.data) };
  }
}
