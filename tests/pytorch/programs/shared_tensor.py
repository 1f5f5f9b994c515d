# A tensor that another process opens (torch.multiprocessing): the memory stays its owner's.
#
# dryrun: --devices 2
# peak: 4194304
import torch
import torch.multiprocessing as multiprocessing


def look(queue, answers):
    tensor = queue.get()
    free, total = torch.cuda.mem_get_info(1)
    answers.put((tuple(tensor.shape), str(tensor.device), tensor.data_ptr() != 0, torch.cuda.memory_allocated(1)))
    del tensor


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    other = context.Process(target=look, args=(queue, answers))
    other.start()
    kept = torch.empty(4 << 20, dtype=torch.uint8, device="cuda:1")
    queue.put(kept.view(4, 1 << 20))
    seen = answers.get(timeout=120)
    other.join()
    assert other.exitcode == 0 and seen == ((4, 1 << 20), "cuda:1", True, 0), (other.exitcode, seen)
