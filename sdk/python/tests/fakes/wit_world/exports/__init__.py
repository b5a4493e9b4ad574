class Handler:
    pass


class ActionProvider:
    pass


class OsUpdate:
    pass
