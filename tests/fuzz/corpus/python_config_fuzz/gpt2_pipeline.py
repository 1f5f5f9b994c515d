# Written anew after examples/language/gpt/titans/configs/gpt2_small_zero3_pp1d.py of hpcaitech/ColossalAI.
from model import GPT2_small_pipeline_hybrid

from colossalai.nn.optimizer import HybridAdam
from colossalai.zero.shard_utils import TensorShardStrategy

BATCH_SIZE = 8
SEQ_LEN = 1024
NUM_MICRO_BATCHES = 4
HIDDEN_SIZE = 768
TENSOR_SHAPE = (BATCH_SIZE // NUM_MICRO_BATCHES, SEQ_LEN, HIDDEN_SIZE)
zero = dict(
    model_config=dict(tensor_placement_policy="cpu", shard_strategy=TensorShardStrategy()),
    optimizer_config=dict(initial_scale=2**5),
)
optimizer = dict(type=HybridAdam, lr=0.000015, weight_decay=1e-2)
model = dict(type=GPT2_small_pipeline_hybrid, checkpoint=True, num_chunks=1)
parallel = dict(pipeline=1, tensor=dict(size=2, mode="1d"))
