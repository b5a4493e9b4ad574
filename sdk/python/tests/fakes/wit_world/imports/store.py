"""A store whose first `compare_and_set` of a test finds that another call was faster."""

values = {}
interferences = []


async def get(key):
    return values.get(key)


async def set(key, value):
    values[key] = value


async def set_for(key, value, lifetime):
    values[key] = value


async def compare_and_set(key, expected, value, lifetime):
    if interferences:
        values[key] = interferences.pop()
    if values.get(key) != expected:
        return False
    values[key] = value
    return True
