#!/usr/bin/env python3
"""Does `shardscope inspect` say where the time of a profiler's recording went as a plain script does that shares no code
with it?

    profile_oracle.py SHARDSCOPE [TRACE.json[.gz] ...]

Without recordings: random ones, written as several versions of PyTorch's profiler do, some as several ranks in one file.
Prints one line a file, ends with 1 where something differs. Times are whole nanoseconds throughout; a moment counts in a
sum over a device when something of a kind runs in it, found by going from edge to edge.
"""
import bisect, collections, decimal, gzip, json, pathlib, random, re, subprocess, sys, tempfile

SIZES = {"Byte": 1, "Half": 2, "BFloat16": 2, "Float": 4, "Long": 8, "Float8_e4m3fn": 1}
INPUT_SIZES = {"unsigned char": 1, "signed char": 1, "int": 4, "long": 8, "float": 4, "c10::Half": 2, "c10::BFloat16": 2}
KINDS = {"allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter", "broadcast": "broadcast",
         "alltoall": "all_to_all", "sendrecv": "send_receive"}
GPU = {"kernel": "kernel", "Kernel": "kernel", "gpu_memcpy": "copy", "Memcpy": "copy", "gpu_memset": "fill",
       "Memset": "fill"}
NOT_HOST = set(GPU) | {"gpu_user_annotation", "cuda_sync", "Trace", "overhead"}
DIRECTIONS = {"HtoD": "host_to_device", "DtoH": "device_to_host", "DtoD": "device_to_device", "PtoP": "between_devices"}


def kind_of(text):
    text = re.sub(r"[_-]", "", text.split("(")[0].lower())
    for word, kind in KINDS.items():
        if word in text:
            return kind
    return "other_collective"


def nanoseconds(number):
    return int((decimal.Decimal(str(number)) * 1000).to_integral_value(decimal.ROUND_HALF_UP))


def read(path):
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", errors="replace") as file:
        document = json.load(file, parse_float=decimal.Decimal, strict=False)
    return document


class Span:
    def __init__(self, event):
        self.name, self.category = event["name"], event.get("cat", "")
        self.begin = nanoseconds(event["ts"])
        self.end = self.begin + nanoseconds(event.get("dur", 0))
        self.thread, self.arguments = (event["pid"], event["tid"]), event.get("args", {})
        named = re.match(r"\[rank(\d+)\]", str(event["pid"]))
        self.rank = int(named.group(1)) if named else None
        self.device = self.arguments.get("device")


def spans_of(document):
    spans = [Span(e) for e in document["traceEvents"] if e.get("ph") == "X" and "ts" in e]
    rank = document.get("distributedInfo", {}).get("rank", 0)
    named = [s.rank for s in spans if s.rank is not None]
    for span in spans:
        if span.rank is None:
            span.rank = min(named) if named else rank
    return spans


def edges(groups, begin, end):
    """Nanoseconds between begin and end in which something of each group runs, and of every two of them."""
    changes = []
    for number, group in enumerate(groups):
        for first, last in group:
            first, last = max(first, begin), min(last, end)
            if first < last:
                changes += [(first, 1, number), (last, -1, number)]
    running, sums, before = [0] * len(groups), collections.Counter(), begin
    for time, change, number in sorted(changes):
        held = tuple(i for i, count in enumerate(running) if count > 0)
        for i in held:
            sums[i] += time - before
            for j in held:
                if i < j:
                    sums[i, j] += time - before
        if held:
            sums["any"] += time - before
        running[number] += change
        before = time
    return sums


def bytes_of_call(kernel, spans):
    """What newer files say at the kernel; of older ones, at the calls around its launch."""
    a = kernel.arguments
    if "In msg nelems" in a:
        return max(a["In msg nelems"], a["Out msg nelems"]) * SIZES[a["dtype"]], kind_of(a["Collective name"])
    launches = [s for s in spans if s.category in ("cuda_runtime", "Runtime") and "Launch" in s.name
                and s.arguments.get("correlation") == a.get("correlation")]
    found, kind = 0, kind_of(kernel.name)
    for launch in launches[:1]:
        around = [s for s in spans if s.thread == launch.thread and s.begin <= launch.begin <= s.end
                  and re.match(r"nccl:|c10d::|record_param_comms", s.name) and s.category in ("cpu_op", "Operator", "user_annotation")]
        for call in sorted(around, key=lambda s: s.begin, reverse=True):
            if call.name != "record_param_comms":
                kind = kind_of(call.name)
        for call in sorted(around, key=lambda s: s.begin, reverse=True):
            if found:
                break
            sizes = []
            for dims, kept in zip(call.arguments.get("Input Dims", []), call.arguments.get("Input type", [])):
                if dims and kept in INPUT_SIZES and not isinstance(dims[0], list):
                    elements = 1
                    for d in dims:
                        elements *= d
                    sizes.append(elements * INPUT_SIZES[kept])
            if call.name.startswith("c10d::"):
                found = max(sizes, default=0)
            elif call.name.startswith("nccl:") and kind != "all_gather":
                found = sum(sizes)
    return found, kind


def time_of(groups, begin, end):
    compute, communication, copies = groups
    sums = edges([compute, communication, copies], begin, end)
    return {"busy": sums["any"], "idle": end - begin - sums["any"], "kernel": sums[0], "copy": sums[2],
            "communication": sums[1], "hidden": sums[0, 1], "exposed": sums[1] - sums[0, 1]}


def self_times(spans):
    """From edge to edge on each thread: what is between belongs to the span begun last, of several the shortest."""
    result, threads = {id(s): 0 for s in spans}, collections.defaultdict(list)
    for span in spans:
        threads[span.thread].append(span)
    for list_ in threads.values():
        order = sorted(range(len(list_)), key=lambda i: (list_[i].begin, -list_[i].end, i))
        changes = sorted([(list_[i].begin, 1, n) for n, i in enumerate(order)] + [(list_[i].end, 0, n) for n, i in enumerate(order)])
        running, ended, before = [], set(), 0
        for time, begins, number in changes:
            if running:
                result[id(list_[order[running[-1]]])] += time - before
            before = time
            if begins and number not in ended:
                bisect.insort(running, number)
            elif number in running:
                running.remove(number)
            ended.add(number)
    return result


def expected(document):
    spans = spans_of(document)
    answer = {"ranks": sorted({s.rank for s in spans}), "devices": {}, "collectives": {}, "copies": {}, "kernels": {},
              "operations": {}, "steps": {}}
    devices, windows = collections.defaultdict(lambda: ([], [], [])), {}
    for span in spans:
        first, last = windows.get(span.rank, (span.begin, span.end))
        windows[span.rank] = (min(first, span.begin), max(last, span.end))
    calls = []
    for span in spans:
        what = GPU.get(span.category)
        if what is None:
            continue
        place, time = (span.rank, span.device), (span.begin, span.end)
        collective = what == "kernel" and (span.name.startswith("nccl") or "Collective name" in span.arguments)
        devices[place][1 if collective else 0 if what == "kernel" else 2].append(time)
        if what == "kernel":
            kind = "kernel"
            if collective:
                size, kind = bytes_of_call(span, spans)
                calls.append((place, kind, time, size))
            of = answer["kernels"].setdefault((span.name, "collective" if collective else "kernel"), [0, 0])
            of[0] += 1
            of[1] += span.end - span.begin
        else:
            direction = "fill" if what == "fill" else next((d for w, d in DIRECTIONS.items() if w in span.name), "not_known")
            of = answer["copies"].setdefault((*place, direction), [0, 0, 0])
            of[0] += 1
            of[1] += span.arguments.get("bytes", 0)
            of[2] += span.end - span.begin
    for place, groups in devices.items():
        begin, end = windows[place[0]]
        of = answer["devices"][place] = time_of(groups, begin, end)
        all_ = [t for group in groups for t in group if t[0] < t[1]]
        if all_:
            of["idle_between"] = max(t[1] for t in all_) - min(t[0] for t in all_) - of["busy"]
        for span in spans:
            number = re.fullmatch(r"ProfilerStep#(\d+)", span.name)
            if number and span.category == "user_annotation" and span.rank == place[0]:
                answer["steps"][(int(number.group(1)), *place)] = {"window": span.end - span.begin,
                                                                   **time_of(groups, span.begin, span.end)}
    for place, kind, time, size in calls:
        of = answer["collectives"].setdefault((*place, kind), [0, 0, 0, 0, 0])
        hidden = edges([devices[place][0], [time]], *time)[0, 1]
        for i, value in enumerate([1, size, size == 0, time[1] - time[0], hidden]):
            of[i] += value
    host = [s for s in spans if s.category not in NOT_HOST]
    own = self_times([s for s in spans if s.category not in set(GPU) | {"gpu_user_annotation", "cuda_sync"}])
    for span in host:
        of = answer["operations"].setdefault((span.name, span.category), [0, 0, 0])
        for i, value in enumerate([1, span.end - span.begin, own[id(span)]]):
            of[i] += value
    return answer


WORDS = {"cpu_op": "operation", "Operator": "operation", "cuda_runtime": "runtime", "Runtime": "runtime",
         "cuda_driver": "runtime", "user_annotation": "annotation", "python_function": "python"}


def ns(seconds):
    return round(seconds * 1e9)


def answered(shardscope, path):
    done = subprocess.run([shardscope, "inspect", str(path), "--json", "--top", "1000000"], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"exit {done.returncode}: {done.stderr.strip()}")
    j = json.loads(done.stdout)
    times = ("busy", "idle", "kernel", "copy", "communication", "hidden", "exposed")
    answer = {"ranks": j["ranks"], "devices": {}, "steps": {}}
    for d in j["devices"]:
        answer["devices"][d["rank"], d["device"]] = {k: ns(d[k + "_seconds"]) for k in times + ("idle_between",)}
        assert abs(d["busy_share"] * d["window_seconds"] - d["busy_seconds"]) < 1e-9, "busy share"
        assert ns(d["idle_seconds"]) + ns(d["busy_seconds"]) == ns(d["window_seconds"]), "idle and busy"
    for step in j["steps"]:
        for d in step["devices"]:
            answer["steps"][step["step"], d["rank"], d["device"]] = {
                "window": ns(d["seconds"]), **{k: ns(d[k + "_seconds"]) for k in times}}
    answer["collectives"] = {(c["rank"], c["device"], c["kind"]): [c["count"], c["bytes"], c["calls_without_bytes"],
                                                                   ns(c["seconds"]), ns(c["hidden_seconds"])]
                             for c in j["collectives"] if not c["on_host"]}
    assert all(c["on_host"] or ns(c["exposed_seconds"]) == ns(c["seconds"]) - ns(c["hidden_seconds"]) for c in j["collectives"]), "exposed"
    answer["copies"] = {(c["rank"], c["device"], c["direction"]): [c["count"], c["bytes"], ns(c["seconds"])]
                        for c in j["copies"]}
    answer["kernels"] = {(k["name"], k["activity"]): [k["count"], ns(k["total_seconds"])] for k in j["kernels"]}
    answer["operations"] = {(k["name"], k["activity"]): [k["count"], ns(k["total_seconds"]), ns(k["self_seconds"])]
                            for k in j["operations"]}
    return answer


def check(shardscope, path):
    want, got = expected(read(path)), answered(shardscope, path)
    operations = {}
    for (name, category), sums in want["operations"].items():
        is_ = kind_of(name) if name.startswith("gloo:") else WORDS.get(category, "operation")
        of = operations.setdefault((name, is_), [0, 0, 0])
        for i, value in enumerate(sums):
            of[i] += value
    want["operations"] = operations
    for part in want:
        if got[part] == want[part]:
            continue
        if isinstance(want[part], list):
            raise AssertionError(f"{part}: {got[part]} for {want[part]}")
        keys = [k for k in set(got[part]) | set(want[part]) if got[part].get(k) != want[part].get(k)]
        raise AssertionError(f"{part}: {len(keys)} differ: " +
                             "; ".join(f"{k}: {got[part].get(k)} for {want[part].get(k)}" for k in keys[:3]))
    return want


class Writer:
    """Random recordings of `version`: 1 as of PyTorch 1.8, 2 as of 2.0, 3 as of 2.3 and later."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.version, self.events, self.id = 1 + seed % 3, [], 100
        self.base = 0 if self.version == 3 else 1_700_000_000_000_000
        self.digits = 3 if self.version == 3 else 0

    def time(self, value):
        return round(self.base + value, self.digits) if self.digits else int(self.base + value)

    def span(self, category, name, pid, tid, begin, end, **arguments):
        event = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": self.time(begin),
                 "dur": round(self.time(end) - self.time(begin), 3)}
        if arguments:
            event["args"] = arguments
        self.events.append(event)

    def nested(self, pid, tid, begin, end, depth):
        """Spans inside each other, of whole microseconds so that what lies inside does so in every version."""
        rng, at = self.rng, begin
        while at < end and rng.random() < 0.9:
            first = at + rng.randrange(0, 40)
            last = first + rng.choice([0, rng.randrange(1, 400), rng.randrange(1, 4000)])
            if last > end:
                return
            category = rng.choice(["cpu_op", "cpu_op", "python_function", "user_annotation", "cuda_runtime"])
            if self.version == 1:
                category = {"cpu_op": "Operator", "cuda_runtime": "Runtime"}.get(category, "Operator")
            self.span(category, rng.choice(["aten::mm", "aten::add", "step", "a.py(3): f", "cudaLaunchKernel"]), pid, tid,
                      first, last)
            if depth and category != "cuda_runtime":
                self.nested(pid, tid, first, last, depth - 1)
            at = last

    def collective(self, pid, gpu, device, begin, end):
        rng, a = self.rng, {"device": device, "stream": 20}
        self.id += 1
        word, called = rng.choice([("AllReduce_Sum_f32", "allreduce"), ("AllGather", "_allgather_base"),
                                   ("ReduceScatter_Sum_bf16", "_reduce_scatter_base"), ("SendRecv", "all_to_allv"),
                                   ("Broadcast", "broadcast"), ("Generic", "allreduce_coalesced")])
        if self.version == 3:
            name, type_, n, group = f"ncclDevKernel_{word}_RING_LL(ncclDevKernelArgsStorage<4096ul>)", rng.choice(list(SIZES)), rng.randrange(1, 9999), 8
            a.update({"correlation": self.id})
            if rng.random() < 0.8:
                a.update({"Collective name": called, "dtype": type_, "Group size": group,
                          "In msg nelems": n if "gather" in called else n * group,
                          "Out msg nelems": n * group if "gather" in called else n})
        else:
            name = f"ncclKernel_{word}_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
            a.update({"correlation": self.id, "External id": self.id})
            if rng.random() < 0.7:  # the calls around its launch
                cpu, annotation, run = (("Operator", "user_annotation", "Runtime") if self.version == 1 else
                                        ("cpu_op", "user_annotation", "cuda_runtime"))
                at, type_, n = begin - 100, rng.choice(list(INPUT_SIZES)), rng.randrange(1, 999)
                operator = {"_allgather_base": "c10d::_allgather_base_", "all_to_allv": "c10d::alltoall_base_"}.get(called)
                if operator:
                    self.span(cpu, operator, pid, 5000 + device, at, at + 40, **{"Input Dims": [[8, n], [n], [], []],
                                                                      "Input type": [type_, type_, "", "Scalar"]})
                self.span(cpu, "record_param_comms", pid, 5000 + device, at + 1, at + 39, **{"Input Dims": [[n], []], "Input type": [type_, ""]})
                self.span(annotation, "nccl:" + called, pid, 5000 + device, at + 2, at + 30,
                          **{"Input Dims": [[n], [3, 5]][:1 + ("coalesced" in called)], "Input type": [type_, type_]})
                self.span(run, "cudaLaunchKernel", pid, 5000 + device, at + 10, at + 20, correlation=self.id)
        self.span("Kernel" if self.version == 1 else "kernel", name, gpu, 20, begin, end, **a)

    def device(self, pid, gpu, device):
        rng, names = self.rng, {1: ("Kernel", "Memcpy", "Memset")}.get(self.version, ("kernel", "gpu_memcpy", "gpu_memset"))
        for stream, what in ((7, 0), (13, 0), (20, 3), (9, 1)):
            at = rng.randrange(200, 900)
            for _ in range(rng.randrange(0, 25)):
                first = at + rng.choice([0, 1, rng.randrange(0, 700)])
                at = last = first + rng.randrange(0, 500)
                a = {"device": device, "stream": stream, "correlation": 5}
                kind = what if rng.random() < 0.9 else 2
                if kind == 0:
                    self.span(names[0], rng.choice(["gemm", "void at::native::reduce_kernel<512>(float)"]), gpu, stream, first, last, **a)
                elif kind == 1:
                    word = rng.choice(["HtoD (Pinned -> Device)", "DtoH (Device -> Pageable)", "DtoD (Device -> Device)"])
                    self.span(names[1], "Memcpy " + word, gpu, stream, first, last, bytes=rng.randrange(1 << 40), **a)
                elif kind == 2:
                    self.span(names[2], "Memset (Device)", gpu, stream, first, last, bytes=rng.randrange(999), **a)
                else:
                    at = last = first + 200
                    self.collective(pid, gpu, device, first + 150, last)
            if self.version > 1:
                self.span("gpu_user_annotation", "ProfilerStep#3", gpu, stream, 100, 9000)
                self.span("cuda_sync", "Stream Sync", gpu, stream, 100, 9000, device=device, stream=stream)

    def document(self):
        rng, several = self.rng, self.rng.randrange(4) == 0
        ranks = sorted(rng.sample(range(64), rng.randrange(2, 5))) if several else [rng.randrange(64)]
        for rank in ranks:
            label = (lambda pid: f"[rank{rank}] {pid}") if several else lambda pid: pid
            device = rng.randrange(8)
            for step, at in enumerate(range(0, 9000, 3000)):
                self.span("user_annotation", f"ProfilerStep#{step + 3}", label(4000), 4000, at, at + rng.choice([2500, 3000]))
                self.nested(label(4000), 4000, at, at + 2500, 5)
            self.nested(label(4000), 4001, 0, 9000, 7)
            for _ in range(rng.choice([0, 0, 30])):  # another clock's, which cross
                first = rng.randrange(9000)
                self.span("python_function" if self.version > 1 else "Operator", rng.choice(["g", "h"]), label(4000), 4001, first,
                          first + rng.randrange(900))
            self.device(label(4000), label(device), device)
            if rng.randrange(3) == 0:
                self.device(label(4000), label(device + 8), device + 8)
            for i in range(rng.randrange(5)):
                self.events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": label(4000),
                                    "tid": 4000, "ts": self.time(i * 10), "args": {"Bytes": 512, "Addr": 512 * (i + 1), "Device Type": 1,
                                    "Device Id": device, "Total Allocated": 512 * (i + 1), "Total Reserved": 2 << 20}})
        if not several:
            self.span("Trace", "PyTorch Profiler (0)", "Spans", "PyTorch Profiler", 0, 12000)
        rng.shuffle(self.events)
        result = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": ranks[0], "world_size": 64}}
        if several:
            del result["distributedInfo"]
        if self.version == 3:
            result["baseTimeNanoseconds"] = 1_700_000_000_000_000_000
        result["traceEvents"] = self.events
        return result


def main():
    shardscope, recordings, failed = sys.argv[1], sys.argv[2:], 0
    for path in recordings:
        try:
            want = check(shardscope, path)
            print(f"{path}: ranks {want['ranks']}, {len(want['kernels'])} kernels, collectives {want['collectives']}")
        except AssertionError as error:
            failed += 1
            print(f"{path}: {error}")
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(0 if recordings else 120):
            path = pathlib.Path(folder) / (f"{seed}.json" + (".gz" if seed % 2 else ""))
            text = json.dumps(Writer(seed).document(), indent=seed % 3 or None)
            path.write_bytes(gzip.compress(text.encode()) if seed % 2 else text.encode())
            try:
                check(shardscope, path)
            except AssertionError as error:
                failed += 1
                print(f"recording {seed}: {error}")
            path.unlink()
    print(f"{failed} differ")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
