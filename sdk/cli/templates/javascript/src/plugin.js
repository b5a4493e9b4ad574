// A plugin. plugin.toml says which routes it answers and what it needs, and names the functions in this file.
import { store } from "supervisor-sdk";

export async function hello({ params }) {
  // Each call runs in a fresh instance, so lasting data belongs in the store.
  const count = await store.update("count", (count) => String(Number(count ?? 0) + 1));
  return `Hello, ${params.name}! This is call ${count}.\n`;
}
