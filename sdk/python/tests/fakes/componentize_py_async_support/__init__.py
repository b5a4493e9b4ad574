def spawn(coroutine):
    raise NotImplementedError
