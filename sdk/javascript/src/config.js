import wit from "platform:supervisor/config@1.3.0";

export const read = () => JSON.parse(wit.json());
