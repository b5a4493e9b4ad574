class Handler:
    pass
