#!/usr/bin/env python3
"""Does `shardscope inspect` name who held memory as a plain script does that shares no code with it, and does
`convert` keep what a snapshot says?

    holders_oracle.py SHARDSCOPE [SNAPSHOT.pickle ...]

Without snapshots: random programs on an allocator of its own, which knows what every block takes; what it pickles is
what PyTorch would. With them: sums over each file, sizes of blocks told by their neighbours. Prints one line a file,
ends with 1 where something differs.
"""
import bisect, collections, json, os, pathlib, pickle, random, subprocess, sys, tempfile, time

KIB, MIB = 1 << 10, 1 << 20


def rounded(size):
    return max(512, -(-size // 512) * 512)


class Allocator:
    """PyTorch's: pools by size and stream, best fit, blocks split but for the tails of large ones."""

    def __init__(self, rng, expandable, max_split):
        self.rng, self.expandable, self.max_split = rng, expandable, max_split
        self.segments, self.free, self.used, self.events, self.time = {}, [], {}, [], 1_700_000_000_000_000
        self.next, self.takes = 0x7F00_0000_0000, {}  # of every alloc by its event: what its block takes

    def log(self, action, address, size, stream, frames):
        self.time += self.rng.randrange(3)
        event = {"action": action, "addr": address, "size": size, "stream": stream, "time_us": self.time, "frames": frames}
        if self.rng.randrange(4) == 0:
            event.update(user_metadata=self.rng.choice(["", "layer 3"]), compile_context="N/A", device_free=size * 3)
        self.events.append(event)
        return event

    def take_segment(self, size, pool, stream, frames):
        total = 2 * MIB if pool == "small" else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        address = self.next
        self.next += total + self.rng.randrange(1, 9) * 32 * MIB
        self.segments[address] = {"size": total, "pool": pool, "stream": stream, "frames": frames}
        self.log("segment_map" if self.expandable else "segment_alloc", address, total, stream, frames)
        self.free.append((total, address, pool, stream, address))

    def alloc(self, size, stream, frames):
        take = rounded(size)
        pool = "small" if take <= MIB else "large"
        never = bool(self.max_split) and take >= self.max_split

        def fits(block):
            if block[2:4] != (pool, stream) or block[0] < take:
                return False
            if self.max_split and pool == "large":  # large requests do not eat splittable blocks, nor the reverse
                return block[0] - take < 20 * MIB if never else block[0] < self.max_split
            return True

        if not any(map(fits, self.free)):
            self.take_segment(take, pool, stream, frames)
            best = self.free[-1]
        else:
            best = min(filter(fits, self.free))
        self.free.remove(best)
        rest = best[0] - take
        split = rest >= 512 if pool == "small" or self.expandable else rest > MIB and not never
        got = take if split else best[0]
        if split:
            self.free.append((rest, best[1] + take, pool, stream, best[4]))
        event = self.log("alloc", best[1], size, stream, frames)
        self.takes[id(event)] = got
        self.used[best[1]] = {"takes": got, "asked": size, "pool": pool, "stream": stream, "segment": best[4],
                              "frames": frames}
        return best[1]

    def release(self, address, frames):
        block = self.used.pop(address)
        self.log("free_requested", address, block["asked"], block["stream"], frames)
        self.log("free_completed", address, block["asked"], block["stream"], frames)
        size = block["takes"]
        for other in [f for f in self.free if f[4] == block["segment"]]:
            if other[1] + other[0] == address or address + size == other[1]:
                self.free.remove(other)
                address, size = min(address, other[1]), size + other[0]
        self.free.append((size, address, block["pool"], block["stream"], block["segment"]))

    def empty_cache(self, frames):
        for block in [f for f in self.free if f[0] == self.segments[f[4]]["size"]]:
            self.free.remove(block)
            gone = self.segments.pop(block[4])
            self.log("segment_unmap" if self.expandable else "segment_free", block[4], gone["size"], gone["stream"], frames)

    def snapshot(self, skipped):
        segments = []
        for address, segment in self.segments.items():
            blocks = [{"address": a, "size": b["takes"], "requested_size": b["asked"], "state": "active_allocated",
                       "frames": b["frames"]} for a, b in self.used.items() if b["segment"] == address]
            blocks += [{"address": f[1], "size": f[0], "requested_size": 0, "state": "inactive", "frames": []}
                       for f in self.free if f[4] == address]
            allocated = sum(b["size"] for b in blocks if b["state"] != "inactive")
            segments.append({"device": 0, "address": address, "total_size": segment["size"], "allocated_size": allocated,
                             "active_size": allocated, "requested_size": 0, "stream": segment["stream"],
                             "segment_type": segment["pool"], "segment_pool_id": (0, 0), "is_expandable": self.expandable,
                             "frames": segment["frames"], "blocks": sorted(blocks, key=lambda b: b["address"])})
        return {"segments": segments, "device_traces": [self.events[skipped:]],
                "allocator_settings": {"max_split_size": self.max_split or -1, "expandable_segments": self.expandable,
                                       "garbage_collection_threshold": 0.25, "PYTORCH_CUDA_ALLOC_CONF": ""},
                "external_annotations": [{"stage": "START", "name": "step", "device": 0, "time_us": 5}, None]}


def frame(function, file, line):
    return {"name": function, "filename": file, "line": line}


def random_stack(rng, shared):
    """Frames, the innermost first, and which of them is the user's own line (or what stands in for it)."""
    kind = rng.randrange(10)
    if kind == 0:
        return [], None
    inner = [frame("at::empty_cuda(long)", "??", 0), frame("at::_ops::mm::call(at::Tensor const&)", "", 0)][:rng.randrange(3)]
    if kind == 1:  # backward: no Python at all
        node = frame(f"torch::autograd::generated::{rng.choice(['Mm', 'Add', 'Silu'])}Backward0::apply(std::vector<int>&&)", "Functions.cpp", 0)
        return inner + [node, frame("start_thread", "??", 0)], node
    torch = "/opt/venv/lib/python3.11/site-packages/torch/"
    inner += [frame("linear", torch + "nn/functional.py", 5)] * rng.randrange(2)
    own = frame(rng.choice(["forward", "step", "__init__"]), f"/home/me/{rng.choice('abc')}.py", rng.randrange(1, 6))
    outer = [frame("_call_impl", torch + "nn/modules/module.py", 1790), frame("main", "/home/me/train.py", rng.randrange(1, 4)),
             frame("<module>", "/home/me/train.py", rng.choice([90, 90, 2**64 - 1]))][rng.randrange(3):]
    if kind == 2:  # nothing of the user's: the innermost Python
        only = frame("step", torch + "optim/adam.py", 246)
        return inner[:0] + [only, frame("_use_grad", torch + "optim/optimizer.py", 79)], only
    pick = lambda f: shared.setdefault(tuple(sorted(f.items())), f)
    return [pick(f) for f in inner + [own] + outer], own


def program(seed):
    rng = random.Random(seed)
    allocator = Allocator(rng, expandable=seed % 5 == 3, max_split=(64 * MIB if seed % 5 == 4 else 0))
    shared = {}
    stacks = [random_stack(rng, shared) for _ in range(rng.randrange(1, 40))]
    largest = rng.choice([2 * KIB, 300 * KIB, 4 * MIB, 90 * MIB])
    for _ in range(rng.randrange(5, 600)):
        stack = rng.choice(stacks)[0]
        if allocator.used and rng.random() < 0.45:
            allocator.release(rng.choice(list(allocator.used)), stack)
        elif rng.random() < 0.02:
            allocator.empty_cache(stack)
        else:
            allocator.alloc(max(1, int(largest ** rng.random())) if rng.random() < 0.5 else rng.randrange(1, largest),
                            rng.choice([0, 0, 0, 7]), stack)
    return rng, allocator, {id(f): own for f, own in stacks}


def key(frames):
    return tuple((f["filename"], f["line"], f["name"]) for f in frames)


def site(own):
    return ("", 0, "") if own is None else (own["filename"], own["line"], own["name"])


def live_at(start, events, takes, until):
    """Blocks in use after event `until`: address -> (takes, asked, frames)."""
    live = dict(start)
    for i, event in enumerate(events[:until + 1]):
        if event["action"] == "alloc":
            live[event["addr"]] = (takes[i], event["size"], event["frames"])
        elif event["action"] == "free_completed":
            live.pop(event["addr"], None)
    return live


def peak_event(start, events, takes):
    total = sum(b[0] for b in start.values())
    sizes, best, at = {a: b[0] for a, b in start.items()}, total if start else -1, -1
    for i, event in enumerate(events):
        if event["action"] == "alloc":
            sizes[event["addr"]] = takes[i]
            total += takes[i]
        elif event["action"] == "free_completed":
            total -= sizes.pop(event["addr"], 0)
        if total > best:
            best, at = total, i
    return at


def sums(live, name):
    result = collections.defaultdict(lambda: [0, 0, 0])
    for takes, asked, frames in live.values():
        of = result[name(frames)]
        of[0] += takes
        of[1] += asked
        of[2] += 1
    return {k: tuple(v) for k, v in result.items()}


def ask(shardscope, path, by, at="peak", top=10_000_000):
    done = subprocess.run([shardscope, "inspect", path, "--at", at, "--by", by, "--top", str(top), "--json"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"exit {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)["peak"]


def answered(peak, name):
    assert sum(h["bytes"] for h in peak["holders"]) + peak["rest"]["bytes"] == peak["allocated_bytes"], "do not add up"
    sizes = [h["bytes"] for h in peak["holders"]]
    assert sizes == sorted(sizes, reverse=True), "not by size"
    result = {}
    for holder in peak["holders"]:
        k = name(holder)
        assert k not in result, f"{k} twice"
        result[k] = (holder["bytes"], holder["requested_bytes"], holder["blocks"])
    return result


def same(what, got, expected):
    if got == expected:
        return
    wrong = [f"{k}: {got.get(k)} for {expected.get(k)}" for k in set(got) | set(expected) if got.get(k) != expected.get(k)]
    raise AssertionError(f"{what}: {len(wrong)} differ: " + "; ".join(wrong[:3]))


def stack_of(holder):
    return tuple((f["file"], f["line"], f["function"]) for f in holder["stack"])


def site_of(holder):
    return holder["file"], holder["line"], holder["function"]


def convert(shardscope, path, output):
    done = subprocess.run([shardscope, "convert", path, "-o", output], capture_output=True, text=True)
    assert done.returncode == 0, f"convert: exit {done.returncode}: {done.stderr.strip()}"


def check_conversions(shardscope, path, folder):
    """As a snapshot again it is the same, value for value; as a trace of our own it has the same holders."""
    again, native = str(pathlib.Path(folder) / "again.pickle"), str(pathlib.Path(folder) / "native.sst")
    convert(shardscope, path, again)
    first, second = (pickle.loads(pathlib.Path(p).read_bytes()) for p in (path, again))
    assert first == second, f"another snapshot: {[k for k in first if first[k] != second.get(k)]} differ"
    convert(shardscope, path, native)
    for by in ("stack", "site"):
        before, after = ask(shardscope, path, by), ask(shardscope, native, by)
        before.pop("fragmentation", None)  # a trace of our own has no segments
        assert before == after, f"other holders by {by} in .sst"


def check_random(shardscope, seed, folder):
    rng, allocator, owner = program(seed)
    whole = seed % 2 == 0
    skipped = 0 if whole else rng.randrange(len(allocator.events))
    path = str(pathlib.Path(folder) / f"{seed}.pickle")
    pathlib.Path(path).write_bytes(pickle.dumps(allocator.snapshot(skipped), protocol=2 + seed % 4))
    if seed % 3 == 0:
        check_conversions(shardscope, path, folder)
        untimed = allocator.snapshot(skipped)  # as before PyTorch 2.1
        untimed["device_traces"] = [[{k: v for k, v in e.items() if k != "time_us"} for e in t]
                                    for t in untimed["device_traces"]]
        old = str(pathlib.Path(folder) / f"{seed}-untimed.pickle")
        pathlib.Path(old).write_bytes(pickle.dumps(untimed, protocol=4))
        check_conversions(shardscope, old, folder)
    if not whole:  # what died cannot all be known; that it adds up and names stacks is asked all the same
        answered(ask(shardscope, path, "stack"), stack_of)
        return
    takes = [allocator.takes.get(id(e), 0) for e in allocator.events]
    at = peak_event({}, allocator.events, takes)
    for moment in ("peak", rng.randrange(len(allocator.events))):
        if moment == "peak":
            until, when = at, "peak"
        else:
            when_us = allocator.events[moment]["time_us"]
            until = max(i for i, e in enumerate(allocator.events) if e["time_us"] <= when_us)
            when = f"{when_us - allocator.events[0]['time_us']}us"
        live = live_at({}, allocator.events, takes, until)
        peak = ask(shardscope, path, "stack", when)
        same(f"{when} by stack", answered(peak, stack_of), sums(live, key))
        same(f"{when} by site", answered(ask(shardscope, path, "site", when), site_of),
             sums(live, lambda frames: site(owner[id(frames)])))
        if moment == "peak":
            assert round(peak["time_seconds"] * 1e6) == allocator.events[at]["time_us"] - allocator.events[0]["time_us"], "time"


def neighbours(snapshot, device):
    """Start and sizes of a recording of nobody knows what: what lies behind a large block within 1 MiB is its own."""
    events = [e for e in snapshot["device_traces"][device]]
    live, segments = {}, {}
    for segment in snapshot["segments"]:
        if segment["device"] == device:
            segments[segment["address"]] = segment["total_size"]
            address = segment["address"]
            for block in segment["blocks"]:
                address = block.get("address", address)
                if block["state"].startswith("active"):
                    live[address] = [block["size"], block.get("requested_size", 0), block.get("frames", []), True]
                address += block["size"]
    for event in reversed(events):
        address = event["addr"]
        if event["action"] == "alloc":
            live.pop(address, None)
        elif event["action"] == "free_completed":
            live[address] = [rounded(event["size"]), event["size"], [], rounded(event["size"]) <= MIB]
        elif event["action"] == "segment_alloc":
            segments.pop(address)
        elif event["action"] == "segment_free":
            segments[address] = event["size"]
    start, places, ends = live, sorted(live), sorted(segments)
    live = dict(start)

    def room(address):
        at = bisect.bisect_right(ends, address) - 1
        end = ends[at] + segments[ends[at]]
        after = bisect.bisect_right(places, address)
        return min(end, places[after]) - address if after < len(places) else end - address

    for address, block in start.items():
        tail = room(address) - block[0]
        if not block[3] and 0 <= tail <= MIB:
            block[0], block[3] = block[0] + tail, True
    takes = [0] * len(events)
    for i, event in enumerate(events):
        address = event["addr"]
        if event["action"] == "alloc":
            before = bisect.bisect_left(places, address) - 1
            if before >= 0 and not live[places[before]][3]:
                other = live[places[before]]
                tail = address - places[before] - other[0]
                if 0 <= tail <= MIB:
                    other[0], other[3] = other[0] + tail, True
            takes[i] = rounded(event["size"])
            tail = room(address) - takes[i]
            if takes[i] > MIB and 0 < tail <= MIB:
                takes[i] += tail
            live[address] = [takes[i], 0, [], True]
            bisect.insort(places, address)
        elif event["action"] == "free_completed" and live.pop(address, None):
            places.remove(address)
        elif event["action"] == "segment_alloc":
            segments[address] = event["size"]
            bisect.insort(ends, address)
        elif event["action"] == "segment_free":
            del segments[address]
            ends.remove(address)
    return {a: (b[0], b[1] or b[0], b[2]) for a, b in start.items()}, events, takes


def check_recording(shardscope, path):
    snapshot = pickle.loads(pathlib.Path(path).read_bytes())
    device = max(range(len(snapshot["device_traces"])), key=lambda d: len(snapshot["device_traces"][d]))
    start, events, takes = neighbours(snapshot, device)
    for event in events:
        event.setdefault("frames", [])
    live = live_at(start, events, takes, peak_event(start, events, takes))
    got = answered(ask(shardscope, path, "stack"), stack_of)
    expected = sums(live, key)
    same("by stack", got, expected)
    with tempfile.TemporaryDirectory() as folder:
        check_conversions(shardscope, path, folder)
    largest = sorted(expected.values(), reverse=True)[:5]
    return f"{sum(v[0] for v in expected.values())} bytes, {len(expected)} stacks, largest {[v[0] for v in largest]}"


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 2 * (len(sys.argv) < 2)
    shardscope, recordings = sys.argv[1], sys.argv[2:]
    failed = 0
    for path in recordings:
        try:
            print(f"{path}: {check_recording(shardscope, path)}")
        except AssertionError as error:
            failed += 1
            print(f"{path}: {error}")
    with tempfile.TemporaryDirectory() as folder:
        # Another 40 of 120 programs each day, as tests/daily.h has it.
        said = os.environ.get("SHARDSCOPE_TEST_SEED") or str(int(time.time()) // 86400)
        seeds = range(120) if said == "all" else sorted(random.Random(said).sample(range(120), 40))
        if not recordings:
            print(f"{len(seeds)} of 120 programs (SHARDSCOPE_TEST_SEED={said})")
        for seed in [] if recordings else seeds:
            try:
                check_random(shardscope, seed, folder)
            except AssertionError as error:
                failed += 1
                print(f"program {seed}: {error}")
    print(f"{failed} differ")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
