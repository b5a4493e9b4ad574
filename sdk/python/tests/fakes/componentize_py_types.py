"""The part of componentize-py's module that the tests need."""


class Err(Exception):
    def __init__(self, value):
        self.value = value
