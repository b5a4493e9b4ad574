// Greets, counts its calls and streams: the example of a plugin in TypeScript.
import { BadRequest, integer, log, NotFound, type Request, store, text, timer } from "supervisor-sdk";

interface Greeting {
  greeting: string;
  calls: number;
}

const GREETINGS = new Map([
  ["en", "Hello"],
  ["fr", "Salut"],
]);

export async function hello({ params, query }: Request): Promise<Greeting> {
  const { language } = query.as({ language: text("en") });
  const greeting = GREETINGS.get(language);
  if (greeting === undefined) {
    throw new NotFound(`there is no greeting in \`${language}\``);
  }
  const calls = await store.update("calls", (calls) => String(Number(calls ?? 0) + 1));
  log.info(`${params.name} is greeted`);
  return { greeting: `${greeting}, ${params.name}!`, calls: Number(calls) };
}

/** Streams: each piece goes to the caller as soon as it is yielded. */
export function countdown({ params, query }: Request): AsyncIterable<string> {
  // Read before the answer begins, so a value that does not fit is answered with a 400.
  const { seconds } = query.as({ seconds: integer(3) });
  return pieces(params.name, seconds);
}

async function* pieces(name: string, seconds: number): AsyncGenerator<string> {
  for (let left = seconds; left > 0; left -= 1) {
    yield `${left}\n`;
    await timer.sleep(1000);
  }
  yield `Hello, ${name}!\n`;
}

export async function order({ json }: Request): Promise<object> {
  const { item, count } = await json({ item: text(), count: integer(1) });
  if (count < 1) throw new BadRequest("`count` must be at least 1");
  return { ordered: item, count };
}

/** Streams both ways: answers in capitals while the request is still arriving. */
export async function* shout({ body }: Request): AsyncGenerator<Uint8Array> {
  for await (const piece of body) {
    yield piece.map((byte) => (byte >= 0x61 && byte <= 0x7a ? byte - 0x20 : byte));
  }
}
