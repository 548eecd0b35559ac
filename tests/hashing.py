"""What hashes must give, in Python's own numbers."""


def mixed_by_hand(value):
    """The finaliser of SplitMix64 on unsigned 64-bit integers, from its paper."""
    value %= 2**64
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
    return value ^ (value >> 31)
