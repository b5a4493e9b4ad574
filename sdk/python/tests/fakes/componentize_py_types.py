"""As much of what componentize-py brings as the tests need."""


class Err(Exception):
    def __init__(self, value):
        self.value = value
