// A plugin: plugin.toml says what it answers and needs, and names the functions here.
import { store } from "supervisor-sdk";

export async function hello({ params }) {
  // Each call runs in a fresh instance, so what must last is in the store.
  const count = await store.update("count", (count) => String(Number(count ?? 0) + 1));
  return `Hello, ${params.name}! This is call ${count}.\n`;
}
