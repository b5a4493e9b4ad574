def spawn(coroutine):
    raise NotImplementedError


class _Loop:
    """The event loop of a component."""
