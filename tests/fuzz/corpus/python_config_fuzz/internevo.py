# Written anew after configs/7B_internlm2.py of InternLM/InternEvo, with fewer layers.
SEQ_LEN = 2048
HIDDEN_SIZE = 4096
NUM_LAYER = 2
data = dict(seq_len=SEQ_LEN, micro_num=4, micro_bsz=2, total_steps=20, train_folder=None)
grad_scaler = dict(fp16=dict(initial_scale=2**16, min_scale=1, growth_interval=1000), growth_factor=2, max_scale=2**24)
hybrid_zero_optimizer = dict(overlap_sync_grad=True, reduce_bucket_size=512 * 1024 * 1024, clip_grad_norm=1.0)
adam = dict(lr=1e-4, adam_beta1=0.9, adam_beta2=0.95, weight_decay=0.01)
lr_scheduler = dict(total_steps=data["total_steps"], warmup_ratio=0.01)
model = dict(
    checkpoint=False,
    num_attention_heads=32,
    num_kv_attention_heads=8,
    vocab_size=92544,
    hidden_size=HIDDEN_SIZE,
    num_layers=NUM_LAYER,
    no_bias=True,
    mlp_ratio=3.5,
    dtype="torch.bfloat16",
    norm_type="rmsnorm",
)
"""
zero1 parallel (dict): size, fsdp
"""
parallel = dict(zero1=dict(size=8), tensor=dict(size=1, mode="mtp"), pipeline=dict(size=2, interleaved_overlap=True))
