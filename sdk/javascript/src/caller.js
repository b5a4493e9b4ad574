import wit from "platform:supervisor/caller@1.4.0";

export function current() {
  const { tag, val } = wit.scope();
  const caller = { scope: tag, plugin: wit.plugin() ?? undefined };
  return tag === "service" ? { ...caller, appId: Number(val.appId), service: val.service } : caller;
}

export function covers(appId, caller = current()) {
  return caller.scope === "service" ? caller.appId === appId : caller.scope !== "other";
}
