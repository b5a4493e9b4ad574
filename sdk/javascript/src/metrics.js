import wit from "platform:supervisor/metrics@1.4.0";

import { answers } from "./capability.js";
import { wholeNumber } from "./interface-values.js";

const answering = answers();
const labelsOf = (labels) => Object.entries(labels).map(([name, value]) => ({ name, value: String(value) }));

export const setGauge = answering(async (name, value, labels = {}) => {
  await wit.setGauge(name, labelsOf(labels), value);
});

export const addToCounter = answering(async (name, increment = 1, labels = {}) => {
  await wit.addToCounter(name, labelsOf(labels), wholeNumber(increment));
});
