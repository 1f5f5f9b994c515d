# Written anew after examples/language/opt/colossalai_zero.py of hpcaitech/ColossalAI.
from colossalai.zero.shard_utils import BucketTensorShardStrategy as Strategy

POLICY = "auto"
zero = {
    'model_config': {'shard_strategy': Strategy(), 'tensor_placement_policy': POLICY, 'reuse_fp16_shard': True},
    'optimizer_config': {'gpu_margin_mem_ratio': 4 / 5, 'initial_scale': 16384},
}
