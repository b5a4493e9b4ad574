// Greets, counts its calls and streams: the example of a plugin in JavaScript.
import { BadRequest, integer, log, NotFound, store, text, timer } from "supervisor-sdk";

const GREETINGS = { en: "Hello", fr: "Salut" };

export async function hello({ params, query }) {
  const { language } = query.as({ language: text("en") });
  if (!Object.hasOwn(GREETINGS, language)) {
    throw new NotFound(`there is no greeting in \`${language}\``);
  }
  const calls = await store.update("calls", (calls) => String(Number(calls ?? 0) + 1));
  log.info(`${params.name} is greeted`);
  return { greeting: `${GREETINGS[language]}, ${params.name}!`, calls: Number(calls) };
}

/** Streams: each piece goes to the caller as soon as it is yielded. */
export function countdown({ params, query }) {
  const { seconds } = query.as({ seconds: integer(3) });
  return (async function* () {
    for (let left = seconds; left > 0; left -= 1) {
      yield `${left}\n`;
      await timer.sleep(1000);
    }
    yield `Hello, ${params.name}!\n`;
  })();
}

export async function order({ json }) {
  const { item, count } = await json({ item: text(), count: integer(1) });
  if (count < 1) throw new BadRequest("`count` must be at least 1");
  return { ordered: item, count };
}

/** Streams both ways: answers in capitals while the request is still arriving. */
export async function* shout({ body }) {
  for await (const piece of body) {
    yield piece.map((byte) => (byte >= 0x61 && byte <= 0x7a ? byte - 0x20 : byte));
  }
}
