# Programs whose control flow reads what other ranks send, and how wide the layer is that each rank then trains.
HEAD = """
import os, torch, torch.distributed as dist
dist.init_process_group("nccl")
r, w = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dev = "cuda"

def train(width, steps=2):
    print(f"rank {r} trains {width}.", flush=True)
    layer = torch.nn.Linear(width, width, bias=False, device=dev)
    optimizer = torch.optim.AdamW(layer.parameters(), foreach=False)
    for _ in range(steps):
        layer(torch.ones(4, width, device=dev)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

"""

# Name: the program's own lines, and the width of a rank's layer among four.
PROGRAMS = {
    "broadcast_flag": ("flag = torch.tensor([1 if r == 0 else 0], device=dev); dist.broadcast(flag, 0)\n"
                       "if flag.item(): train(1024)", lambda r: 1024),
    "flag_made_on_device": ("flag = torch.zeros(1, device=dev)\nif r == 0: flag.fill_(1)\ndist.broadcast(flag, 0)\n"
                            "if flag.sum() > 0: train(1024)", lambda r: 1024),
    "broadcast_from_last": ("n = torch.full((1,), 256 * (r + 1), device=dev); dist.broadcast(n, w - 1)\n"
                            "train(int(n))", lambda r: 1024),
    "objects": ("box = [{'width': 1024} if r == 0 else None]; dist.broadcast_object_list(box, 0)\n"
                "train(box[0]['width'])", lambda r: 1024),
    "two_objects": ("box = [640, 'x' * 300] if r == 0 else [1, 2]; dist.broadcast_object_list(box, 0)\n"
                    "assert len(box[1]) == 300\ntrain(box[0])", lambda r: 640),
    "gathered_objects": ("box = [None] * w; dist.all_gather_object(box, {'n': 128 * (r + 1), 'pad': 'y' * r})\n"
                         "train(sum(b['n'] for b in box))", lambda r: 1280),
    "gathered_at_root": ("box = [None] * w if r == 0 else None; dist.gather_object(256 * (r + 1), box, dst=0)\n"
                         "got = [sum(box)] if r == 0 else [None]; dist.broadcast_object_list(got, 0)\ntrain(got[0])",
                         lambda r: 2560),
    "scattered_objects": ("out = [None]; dist.scatter_object_list(out, [256 * (i + 1) for i in range(w)] if r == 0 "
                          "else None, src=0)\ntrain(out[0])", lambda r: 256 * (r + 1)),
    "longer_objects_at_root": ("box = [None] * w if r == 0 else None; dist.gather_object({'n': 256 * (r + 1), 'pad': 'y' * 900 * r}, box)\n"
                               "got = [sum(b['n'] for b in box), 'z' * 7000] if r == 0 else [None, None]\n"
                               "dist.broadcast_object_list(got[::-1] if r == 0 else got, 0)\n"
                               "train(got[0 if r == 0 else 1])", lambda r: 2560),
    "sent_objects": ("if r == 0: dist.send_object_list([{'n': 640}, 'hello' * 100], dst=1)\nbox = [None, None]\n"
                     "if r == 1: dist.recv_object_list(box, src=0)\ntrain(box[0]['n'] if r == 1 else 512)",
                     lambda r: 640 if r == 1 else 512),
    "saved_in_shards": ("import torch.distributed.checkpoint as dcp\nfrom torch.distributed.tensor import Shard, distribute_tensor\n"
                        "mesh = dist.init_device_mesh('cuda', (w,))\nplace = os.path.join(os.environ['PLACE'], 'saved')\n"
                        "rows = {f'row{i}': distribute_tensor(torch.ones(8, 64, device=dev), mesh, [Shard(0)]) for i in range(40)}\n"
                        "dcp.save(rows, checkpoint_id=place)\ndcp.load(rows, checkpoint_id=place)\n"
                        "train(16 * len(dcp.FileSystemReader(place).read_metadata().state_dict_metadata))", lambda r: 640),
    "objects_by_name": ("box = [None] * w if r == 0 else None; dist.gather_object(obj=256 * (r + 1), object_gather_list=box)\n"
                        "out = [None]; dist.scatter_object_list(scatter_object_output_list=out, "
                        "scatter_object_input_list=box, src=0)\ntrain(out[0])", lambda r: 256 * (r + 1)),
    "told_by_stage_before": ("from torch.distributed.pipelining import PipelineStage, ScheduleGPipe\n"
                             "stage = PipelineStage(torch.nn.Linear(64, 64, device=dev), r, w, torch.device(dev, r))\n"
                             "out = ScheduleGPipe(stage, 2).step(*([torch.ones(4, 64, device=dev)] if r == 0 else []))\n"
                             "train(512)", lambda r: 512),
    "gathered_sizes": ("mine = torch.tensor([256 * (r + 1)], device=dev)\n"
                       "got = [torch.zeros_like(mine) for _ in range(w)]; dist.all_gather(got, mine)\n"
                       "train(int(sum(g.item() for g in got)))", lambda r: 2560),
    "gathered_into_one": ("got = torch.empty(w, dtype=torch.long, device=dev)\n"
                          "dist.all_gather_into_tensor(got, torch.tensor([256 * (r + 1)], device=dev))\n"
                          "train(got.max().item())", lambda r: 1024),
    "gathered_list_made_one": ("mine = torch.tensor([128 * (r + 1)], device=dev)\n"
                               "got = [torch.empty_like(mine) for _ in range(w)]; dist.all_gather(got, mine)\n"
                               "train(int(torch.cat(got).sum()))", lambda r: 1280),
    "summed": ("n = torch.tensor(128 * (r + 1), device=dev); dist.all_reduce(n)\ntrain(n.item())", lambda r: 1280),
    "greatest": ("a = torch.tensor([float(r)], device=dev); dist.all_reduce(a, op=dist.ReduceOp.MAX)\n"
                 "assert a.item() == w - 1, 'ranks disagree'\ntrain(768)", lambda r: 768),
    "least_and_mean": ("a = torch.tensor([512 + r, 4 * r], dtype=torch.float64, device=dev)\n"
                       "dist.all_reduce(a[:1], op=dist.ReduceOp.MIN); dist.all_reduce(a[1:], op=dist.ReduceOp.AVG)\n"
                       "train(int((a[0] + a[1]).item()))", lambda r: 518),
    "reduced_at_root": ("n = torch.tensor([256], device=dev); dist.reduce(n, dst=2)\ndist.broadcast(n, 2)\n"
                        "train(n.item())", lambda r: 1024),
    "scattered_sum": ("out = torch.zeros(1, dtype=torch.int32, device=dev)\n"
                      "dist.reduce_scatter_tensor(out, torch.arange(1, w + 1, dtype=torch.int32, device=dev) * 64)\n"
                      "train(out.item())", lambda r: 256 * (r + 1)),
    "exchanged": ("out = torch.zeros(w, dtype=torch.long, device=dev)\n"
                  "dist.all_to_all_single(out, torch.tensor([64 * (r + 1)] * w, device=dev))\n"
                  "train(sum(out.tolist()))", lambda r: 640),
    "passed_on": ("n = torch.zeros(1, dtype=torch.long, device=dev)\nif r > 0: dist.recv(n, r - 1)\nn += 256\n"
                  "if r < w - 1: dist.send(n, r + 1)\ntrain(n.item())", lambda r: 256 * (r + 1)),
    "stages": ("train(512 * (r + 1))", lambda r: 512 * (r + 1)),
    "subgroups": ("pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]\n"
                  "n = torch.tensor([256 * (r + 1)], device=dev); dist.all_reduce(n, group=pairs[r // 2])\n"
                  "train(n.item())", lambda r: 768 if r < 2 else 1792),
    "on_the_cpu": ("cpu = dist.new_group(backend='gloo'); n = torch.tensor([128 * (r + 1)])\n"
                   "dist.all_reduce(n, group=cpu)\ntrain(n.item())", lambda r: 1280),
    "by_file": ("import tempfile, pathlib\npath = pathlib.Path(os.environ['PLACE']) / 'width'\n"
                "if r == 0:\n    import time; time.sleep(1); path.write_text('896')\ndist.barrier()\n"
                "train(int(path.read_text()))", lambda r: 896),
    "product_later": ("n = torch.tensor([r + 1], device=dev); work = dist.all_reduce(n, op=dist.ReduceOp.PRODUCT, async_op=True)\n"
                      "work.wait()\ntrain(n.item() * 32)", lambda r: 768),
    "both_ways": ("n = torch.tensor([128 * (r + 1)], device=dev); got = torch.empty_like(n)\n"
                  "ops = [dist.P2POp(dist.isend, n, (r + 1) % w), dist.P2POp(dist.irecv, got, (r - 1) % w)]\n"
                  "for work in dist.batch_isend_irecv(ops): work.wait()\ntrain(got.tolist()[0])",
                  lambda r: 128 * ((r - 1) % 4 + 1)),
    "gathered_tensors": ("n = torch.tensor([128 * (r + 1)], device=dev)\n"
                         "got = [torch.empty_like(n) for _ in range(w)] if r == 1 else None; dist.gather(n, got, dst=1)\n"
                         "total = torch.stack(got).sum(0) if r == 1 else torch.zeros_like(n)\n"
                         "dist.broadcast(total, 1)\ntrain(int(total))", lambda r: 1280),
    "scattered_tensors": ("n = torch.zeros(1, dtype=torch.long, device=dev)\n"
                          "dist.scatter(n, [torch.tensor([192 * (i + 1)], device=dev) for i in range(w)] if r == 0 else None)\n"
                          "train(n.item())", lambda r: 192 * (r + 1)),
    "mesh": ("from torch.distributed.device_mesh import init_device_mesh\n"
             "mesh = init_device_mesh('cuda', (2, 2), mesh_dim_names=('dp', 'tp'))\n"
             "n = torch.tensor([128 * (r + 1)], device=dev); dist.all_reduce(n, group=mesh.get_group('tp'))\n"
             "m = n.clone(); dist.all_reduce(m, op=dist.ReduceOp.MAX, group=mesh.get_group('dp'))\ntrain(m.item())",
             lambda r: 896),
    "by_store": ("store = dist.distributed_c10d._get_default_store()\nif r == 0: store.set('width', '832')\n"
                 "train(int(store.get('width')))", lambda r: 832),
    "by_parts_in_the_store": ("store = dist.distributed_c10d._get_default_store()\nstore.append('parts', 'ab'); dist.barrier()\n"
                              "train(64 * len(store.get('parts')))", lambda r: 512),
    "by_whether_it_is_stored": ("store = dist.distributed_c10d._get_default_store()\nif r == 1: store.set('go', '1')\n"
                                "dist.barrier()\ntrain(448 if store.check(['go']) else 64)", lambda r: 448),
    "all_agree": ("mine = torch.tensor([7, 7], device=dev); other = mine.clone(); dist.broadcast(other, 2)\n"
                  "flag = (mine == other).all()\nassert torch.equal(mine, other) and bool(flag)\ntrain(704)", lambda r: 704),
    "a_vote": ("vote = torch.tensor([r == 3], device=dev).int(); dist.all_reduce(vote)\n"
               "train(960 if vote.item() == 1 else 64)", lambda r: 960),
    "functional": ("import torch.distributed._functional_collectives as f\n"
                   "n = f.all_reduce(torch.tensor([64 * (r + 1)], device=dev), 'sum', dist.group.WORLD)\n"
                   "train(int(n.item()))", lambda r: 640),
    "shapes_first": ("if r == 0: dist.send(torch.tensor([3, 256], device=dev), 1)\n"
                     "elif r == 1:\n    shape = torch.empty(2, dtype=torch.long, device=dev); dist.recv(shape, 0)\n"
                     "    assert shape[0] == 3\n    x = torch.empty(*shape.tolist(), device=dev)\n"
                     "    train(x.shape[1] * x.shape[0])\nif r != 1: train(320)", lambda r: 768 if r == 1 else 320),
    "tokens_exchanged": ("from torch.distributed._functional_collectives import all_to_all_single\n"
                         "chosen = torch.topk(torch.randn(250, 8, device=dev), 3, dim=-1).indices\n"
                         "sent = torch.histc(chosen.view(-1), bins=8, min=0, max=8)\n"
                         "got = torch.ops._c10d_functional.wait_tensor(all_to_all_single(sent, None, None, dist.group.WORLD))\n"
                         "assert sum(sent.tolist()) == 750\ntrain(sum(got.view(w, -1).sum(dim=1).tolist()))",
                         lambda r: 752 if r < 3 else 744),
}
