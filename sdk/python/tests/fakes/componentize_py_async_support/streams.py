class ByteStreamReader:
    pass
