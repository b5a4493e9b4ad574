import wit from "platform:supervisor/device@1.4.0";

export const identity = () => wit.identity();
export const state = () => JSON.parse(wit.state());
