class Handler:
    pass


class Events:
    pass


class ActionProvider:
    pass


class OsUpdate:
    pass


class Identify:
    pass


class BootConfig:
    pass


class ProxyRedirector:
    pass
