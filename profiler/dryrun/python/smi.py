# The program `nvidia-smi` of a dry run: what the stand-in's NVML says, in the words of NVIDIA's tool.
import ctypes
import datetime
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NOT_AVAILABLE = "[N/A]"
MIB = 1 << 20
ON = ("Disabled", "Enabled")


class Nvml:
    """NVML's functions by their names without `nvml`; None where it does not say."""

    def __init__(self):
        self.library = ctypes.CDLL(os.path.join(HERE, os.pardir, "libnvidia-ml.so.1"))
        if self.library.nvmlInit_v2() != 0:
            raise OSError("NVML does not start")

    def number(self, name, *of, type=ctypes.c_uint):
        value = type()
        return value.value if getattr(self.library, f"nvml{name}")(*of, ctypes.byref(value)) == 0 else None

    def text(self, name, *of):
        value = ctypes.create_string_buffer(256)
        return value.value.decode() if getattr(self.library, f"nvml{name}")(*of, value, 256) == 0 else None

    def words(self, name, count, *of):
        values = (ctypes.c_ulonglong * count)()
        return list(values) if getattr(self.library, f"nvml{name}")(*of, values) == 0 else [0] * count

    def processes(self, device):
        """(process, bytes) each."""
        count = ctypes.c_uint(64)
        entries = (ctypes.c_ulonglong * (3 * count.value))()
        if self.library.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), entries) != 0:
            return []
        return [(entries[3 * i] & 0xffffffff, entries[3 * i + 1]) for i in range(count.value)]


class Card:
    def __init__(self, nvml, index):
        self.nvml, self.index = nvml, index
        device = ctypes.c_void_p()
        nvml.library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device))
        self.device = device
        self.name = nvml.text("DeviceGetName", device)
        self.uuid = nvml.text("DeviceGetUUID", device)
        self.total, self.free, self.used = nvml.words("DeviceGetMemoryInfo", 3, device)
        self.bus = bytes(b"".join(word.to_bytes(8, "little") for word in nvml.words("DeviceGetPciInfo_v3", 9, device)))
        self.bus = self.bus[36:68].split(b"\0")[0].decode()

    def number(self, name, *of):
        return self.nvml.number(name, self.device, *of)

    def watts(self, name):
        value = self.number(name)
        return None if value is None else value / 1000

    def capability(self):
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.nvml.library.nvmlDeviceGetCudaComputeCapability(self.device, ctypes.byref(major), ctypes.byref(minor))
        return f"{major.value}.{minor.value}"

    def mig(self):
        now, later = ctypes.c_uint(), ctypes.c_uint()
        fault = self.nvml.library.nvmlDeviceGetMigMode(self.device, ctypes.byref(now), ctypes.byref(later))
        return None if fault else ON[now.value]


def mode(name):
    return lambda card: None if card.number(name) is None else ON[card.number(name)]


def clock(which):
    return lambda card: card.number("DeviceGetClockInfo", which)


# What may be asked for, its unit, and who says it.
FIELDS = {
    "timestamp": ("", lambda card: datetime.datetime.now().strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]),
    "driver_version": ("", lambda card: card.nvml.text("SystemGetDriverVersion")),
    "count": ("", lambda card: card.nvml.number("DeviceGetCount_v2")),
    "name": ("", lambda card: card.name), "index": ("", lambda card: card.index), "uuid": ("", lambda card: card.uuid),
    "serial": ("", lambda card: None), "vbios_version": ("", lambda card: None), "fan.speed": ("%", lambda card: None),
    "pci.bus_id": ("", lambda card: card.bus), "pci.domain": ("", lambda card: "0x0000"),
    "pci.bus": ("", lambda card: "0x" + card.bus[9:11]), "pci.device": ("", lambda card: "0x00"),
    "compute_cap": ("", Card.capability), "compute_mode": ("", lambda card: "Default"),
    "pcie.link.gen.current": ("", lambda card: card.number("DeviceGetCurrPcieLinkGeneration")),
    "pcie.link.gen.max": ("", lambda card: card.number("DeviceGetMaxPcieLinkGeneration")),
    "pcie.link.width.current": ("", lambda card: card.number("DeviceGetCurrPcieLinkWidth")),
    "pcie.link.width.max": ("", lambda card: card.number("DeviceGetMaxPcieLinkWidth")),
    "display_mode": ("", mode("DeviceGetDisplayMode")), "display_active": ("", mode("DeviceGetDisplayActive")),
    "persistence_mode": ("", mode("DeviceGetPersistenceMode")),
    "pstate": ("", lambda card: f"P{card.number('DeviceGetPerformanceState')}"),
    "memory.total": ("MiB", lambda card: card.total // MIB), "memory.used": ("MiB", lambda card: card.used // MIB),
    "memory.free": ("MiB", lambda card: card.free // MIB), "memory.reserved": ("MiB", lambda card: 0),
    "utilization.gpu": ("%", lambda card: 0), "utilization.memory": ("%", lambda card: 0),
    "temperature.gpu": ("", lambda card: card.number("DeviceGetTemperature", 0)), "temperature.memory": ("", lambda card: None),
    "power.draw": ("W", lambda card: card.watts("DeviceGetPowerUsage")),
    "power.limit": ("W", lambda card: card.watts("DeviceGetPowerManagementLimit")),
    "power.default_limit": ("W", lambda card: card.watts("DeviceGetPowerManagementDefaultLimit")),
    "power.max_limit": ("W", lambda card: card.watts("DeviceGetPowerManagementDefaultLimit")),
    "enforced.power.limit": ("W", lambda card: card.watts("DeviceGetEnforcedPowerLimit")),
    "clocks.current.graphics": ("MHz", clock(0)), "clocks.current.sm": ("MHz", clock(1)),
    "clocks.current.memory": ("MHz", clock(2)), "clocks.max.graphics": ("MHz", clock(0)), "clocks.max.sm": ("MHz", clock(1)),
    "clocks.max.memory": ("MHz", clock(2)), "mig.mode.current": ("", Card.mig), "mig.mode.pending": ("", Card.mig),
    "ecc.mode.current": ("", lambda card: "Enabled"), "ecc.mode.pending": ("", lambda card: "Enabled"),
}
OTHER_NAMES = {"gpu_name": "name", "gpu_uuid": "uuid", "gpu_bus_id": "pci.bus_id", "gpu_serial": "serial",
               "clocks.gr": "clocks.current.graphics", "clocks.sm": "clocks.current.sm", "clocks.mem": "clocks.current.memory",
               "clocks.max.gr": "clocks.max.graphics", "clocks.max.mem": "clocks.max.memory"}
FIELDS_OF_PROCESSES = {"pid": "", "process_name": "", "used_gpu_memory": "MiB", "used_memory": "MiB", "gpu_uuid": "",
                       "gpu_name": "", "gpu_bus_id": ""}


def end(text, code):
    print(text)
    sys.exit(code)


def written(value, unit, with_units):
    if value is None:
        return NOT_AVAILABLE
    text = f"{value:.2f}" if isinstance(value, float) else str(value)
    return f"{text} {unit}" if unit and with_units else text


def table(fields, units, rows, how):
    """As CSV, in the way that `how` says (csv, noheader, nounits)."""
    if "noheader" not in how:
        print(", ".join(f"{field} [{unit}]" if unit else field for field, unit in zip(fields, units)))
    for row in rows:
        print(", ".join(written(value, unit, "nounits" not in how) for value, unit in zip(row, units)))


def checked(fields, known):
    for field in fields:
        if field not in known:
            end(f'Field "{field}" is not a valid field to query.\n', 2)
    return fields


def query_cards(cards, asked, how):
    fields = checked([OTHER_NAMES.get(field, field) for field in asked], FIELDS)
    table(fields, [FIELDS[field][0] for field in fields], [[FIELDS[field][1](card) for field in fields] for card in cards], how)


def query_processes(cards, asked, how):
    fields = checked(asked, FIELDS_OF_PROCESSES)
    rows = []
    for card in cards:
        for process, taken in card.nvml.processes(card.device):
            values = {"pid": process, "process_name": card.nvml.text("SystemGetProcessName", process), "gpu_uuid": card.uuid,
                      "used_gpu_memory": taken // MIB, "used_memory": taken // MIB, "gpu_name": card.name, "gpu_bus_id": card.bus}
            rows.append([values[field] for field in fields])
    table(fields, [FIELDS_OF_PROCESSES[field] for field in fields], rows, how)


def overview(cards):
    nvml = cards[0].nvml
    driver, cuda = nvml.text("SystemGetDriverVersion"), nvml.number("SystemGetCudaDriverVersion", type=ctypes.c_int)
    version = f"{cuda // 1000}.{cuda % 1000 // 10}"
    wide = "+" + 89 * "-" + "+"
    columns = f"+{41 * '-'}+{24 * '-'}+{22 * '-'}+"
    print(datetime.datetime.now().strftime("%a %b %e %H:%M:%S %Y"))
    print(wide)
    print(f"| NVIDIA-SMI {driver:<22} Driver Version: {driver:<14} CUDA Version: {version:<8} |")
    print("|" + columns[1:])
    print("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |")
    print("| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |")
    print("|                                         |                        |               MIG M. |")
    print("|" + columns[1:-1].replace("-", "=") + "|")
    for card in cards:
        memory = f"{card.used // MIB}MiB / {card.total // MIB:>6}MiB"
        power = f"{card.watts('DeviceGetPowerUsage'):.0f}W / {card.watts('DeviceGetPowerManagementLimit'):>4.0f}W"
        print(f"| {card.index:>3}  {card.name[:26]:<26}     On  | {card.bus:>18} Off |                    0 |")
        print(f"| N/A  {card.number('DeviceGetTemperature', 0):>3}C    P0   {power:>21} | {memory:>22} |      0%      Default |")
        print(f"|{41 * ' '}|{24 * ' '}| {card.mig() or 'N/A':>20} |")
        print(columns)
    print("\n" + wide + f"\n| {'Processes:':<87} |")
    print("|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |")
    print("|        ID   ID                                                               Usage      |")
    print("|" + 89 * "=" + "|")
    found = [(card, *each) for card in cards for each in card.nvml.processes(card.device)]
    for card, process, taken in found:
        name = (nvml.text("SystemGetProcessName", process) or "-")[-40:]
        print(f"|{card.index:>5}   N/A  N/A{process:>11}      C   {name:<40}{taken // MIB:>8}MiB |")
    if not found:
        print(f"|{'  No running processes found':<89}|")
    print(wide)


def options_of(words):
    """Options by their long names, a value each; what has none is True."""
    short = {"-i": "--id", "-L": "--list-gpus", "-l": "--loop", "-lms": "--loop-ms", "-h": "--help"}
    flags = {"--list-gpus", "--help"}
    options, rest = {}, list(words)
    while rest:
        name, has_value, value = rest.pop(0).partition("=")
        name = short.get(name, name)
        if name not in flags | {"--id", "--loop", "--loop-ms", "--query-gpu", "--query-compute-apps", "--format"}:
            end(f"{name}: the nvidia-smi of a dry run has the overview, -L, -i, -l, --query-gpu and --query-compute-apps with "
                "--format=csv[,noheader][,nounits]", 2)
        if name not in flags and not has_value:
            if not rest:
                end(f"Missing value of {name}.", 2)
            value = rest.pop(0)
        options[name] = True if name in flags else value
    return options


def split(text):
    return [part.strip() for part in text.split(",")]


def chosen(cards, text):
    """Those that -i names, by index, UUID or bus id."""
    names = split(text)
    found = [card for card in cards if {str(card.index), card.uuid, card.bus, card.bus[4:]} & set(names)]
    return found or end("No devices were found", 6)


def answer(nvml, options):
    cards = [Card(nvml, index) for index in range(nvml.number("DeviceGetCount_v2"))]
    if "--id" in options:
        cards = chosen(cards, options["--id"])
    how = split(options.get("--format", ""))
    if ("--query-gpu" in options or "--query-compute-apps" in options) and "csv" not in how:
        end('"--format=" switch is missing. "csv" is what it takes.', 2)
    if "--list-gpus" in options:
        for card in cards:
            print(f"GPU {card.index}: {card.name} (UUID: {card.uuid})")
    elif "--query-gpu" in options:
        query_cards(cards, split(options["--query-gpu"]), how)
    elif "--query-compute-apps" in options:
        query_processes(cards, split(options["--query-compute-apps"]), how)
    else:
        overview(cards)
    sys.stdout.flush()


def main(words):
    options = options_of(words)
    if "--help" in options:
        end("nvidia-smi [-L] [-i CARD] [-l SECONDS] [--query-gpu=FIELDS | --query-compute-apps=FIELDS] "
            f"--format=csv[,noheader][,nounits]\nOf a dry run: a card that is not there. FIELDS: {', '.join(FIELDS)}", 0)
    try:
        nvml = Nvml()
    except OSError as fault:
        end(f"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver: {fault}", 9)
    while True:
        answer(nvml, options)
        if "--loop" not in options and "--loop-ms" not in options:
            return
        time.sleep(float(options.get("--loop", 0)) + float(options.get("--loop-ms", 0)) / 1000)


if __name__ == "__main__":
    main(sys.argv[1:])
