import wit from "platform:supervisor/config@1.4.0";

export const read = () => JSON.parse(wit.json());
