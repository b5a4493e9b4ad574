/** Whether the plugin serves a call. The build imports the plugin, and each call begins where the import ended. */

export let isServing = false;

/** Begins a call. */
export function beginCall() {
  isServing = true;
}
