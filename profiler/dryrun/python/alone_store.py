# The store by which ranks find each other, of one rank among others that do not exist: PyTorch finds in it what it would
# wait for, and a program's own question about another rank's part is an error.
import os
import sys

OF_NCCL = "/cuda//"  # in keys of groups of cards: a group's identity, which C++ asks for below any line of the program
IDENTITY_BYTES = 128  # ncclUniqueId


def lone_store(torch, reader):
    """What the others would write is there when PyTorch asks for it."""
    from datetime import timedelta

    class LoneStore(torch.distributed.Store):
        def __init__(self, world_size):
            super().__init__()
            self.world_size, self.values = world_size, {}
            self.shared = set()  # keys whose values are made of parts of several ranks

        def of_others(self, key, what):
            """Raises where the program's own code asks for what another rank may have said; else whether it does."""
            if OF_NCCL in key or self.world_size == 1:
                return False
            reader.refuse(f"{what} of the store ({key.rsplit('//', 1)[-1]})", has_own=False)
            return reader.is_own(reader.line()[0])

        def set(self, key, value):
            self.values[key] = as_bytes(value)

        def get(self, key):
            is_known = key in self.values and key not in self.shared
            asks = not is_known and self.of_others(key, "a key that another rank writes")
            return self.values.get(key, b"0" if asks else bytes(IDENTITY_BYTES))

        def add(self, key, amount):
            # Whoever counts waits for all: the others have counted, too.
            count = int(self.values.get(key, b"0")) + (amount * self.world_size if amount > 0 else amount)
            self.values[key] = str(count).encode()
            return count

        def compare_set(self, key, expected, desired):
            if key not in self.values:
                self.of_others(key, "a key that the first of several ranks writes")
            if self.values.get(key, b"") == as_bytes(expected):
                self.set(key, desired)
            return self.values.get(key, b"")

        def delete_key(self, key):
            return self.values.pop(key, None) is not None

        def num_keys(self):
            self.of_others("all", "the number of keys")
            return len(self.values)

        def check(self, keys):
            # Ranks tell each other of faults so: there are none.
            for key in keys:
                if key not in self.values:
                    self.of_others(key, "whether another rank has written a key")
            return all(key in self.values for key in keys)

        def wait(self, keys, timeout=None):
            pass

        def set_timeout(self, timeout):
            pass

        @property
        def timeout(self):
            return timedelta(seconds=300)

        def append(self, key, value):
            self.shared.add(key)
            self.values[key] = self.values.get(key, b"") + as_bytes(value)

        def multi_get(self, keys):
            return [self.get(key) for key in keys]

        def multi_set(self, keys, values):
            for key, value in zip(keys, values):
                self.set(key, value)

        def has_extended_api(self):
            return True

        def clone(self):
            return self  # a group that is split off another has a connection of its own: to the same values

    return LoneStore


def as_bytes(value):
    return value.encode() if isinstance(value, str) else bytes(value)


def join_others(torch, reader):
    """Rendezvous of a run of several ranks returns at once."""
    rendezvous = sys.modules.get("torch.distributed.rendezvous")
    if rendezvous is None or not hasattr(rendezvous, "_rendezvous_handlers"):
        return
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = lone_store(torch, reader)(size)  # kept: PyTorch holds what is C++ of it alone

    def handler(url, timeout=None, **more):
        handler.store = store
        yield store, rank, size

    for scheme in ("env", "tcp", "file"):
        rendezvous._rendezvous_handlers[scheme] = handler
