"""Files of protocol buffers, read whole."""


def whole(kind, path):
    """The message of a file. Fails where it has fields that the definition does not have, or has with another type."""
    with open(path, "rb") as file:
        content = file.read()
    # Unknown fields would be written again, behind the rest.
    known = kind.FromString(content)
    known.DiscardUnknownFields()
    assert known.ByteSize() == len(content), "fields that the definition does not have"
    return known
