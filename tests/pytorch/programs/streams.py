# Two streams, events and record_stream; copies to the host and back on a stream of their own.
import torch

side = torch.cuda.Stream()
x = torch.randn(1 << 20, device="cuda")
host = torch.empty(1 << 20, pin_memory=True)
for step in range(5):
    y = x * 2
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        z = y + 1
        y.record_stream(side)
        host.copy_(z, non_blocking=True)
        done = side.record_event()
    del y
    torch.cuda.current_stream().wait_event(done)
    z.record_stream(torch.cuda.current_stream())
    del z
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
begin.record()
x @ x.view(1024, 1024).new_ones(1 << 20)
end.record()
torch.cuda.synchronize()
assert begin.elapsed_time(end) > 0
print(torch.cuda.memory_stats()["allocated_bytes.all.peak"])
