import wit from "platform:supervisor/identify-window@1.4.0";

export const remaining = () => wit.remainingMs();
