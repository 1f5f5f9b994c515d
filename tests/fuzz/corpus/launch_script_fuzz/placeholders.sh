# Written anew: what people leave to be filled in before they launch (megablocks' exp/gpt2 scripts take arguments).
torchrun --nproc_per_node ${GPUS} --nnodes ${NODES:-2} pretrain_gpt.py \
  --tensor-model-parallel-size $TP --num-layers ${LAYERS} --hidden-size 1024 --num-attention-heads 16 \
  --micro-batch-size ${MBS} --global-batch-size 64 --seq-length 1024 --max-position-embeddings 1024 --bf16
