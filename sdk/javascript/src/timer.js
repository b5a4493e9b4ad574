import wit from "platform:supervisor/timer@1.4.0";

export async function sleep(milliseconds) {
  await wit.sleep(Math.min(Math.max(Math.round(milliseconds), 0), 0xffff_ffff));
}
