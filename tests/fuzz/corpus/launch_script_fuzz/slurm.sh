#!/bin/bash
#SBATCH --job-name=1b
#SBATCH --nodes=16
#SBATCH --gres=gpu:8
# Written anew after examples/pretrain_bigcode_1b.slurm of bigcode-project/Megatron-LM.
GPUS_PER_NODE=8
MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
NNODES=$SLURM_NNODES
GPT_ARGS="\
       --tensor-model-parallel-size 1 \
       --num-layers 24 --hidden-size 2048 --num-attention-heads 16 \
       --attention-head-type multiquery \
       --seq-length 8192 --max-position-embeddings 8192 \
       --micro-batch-size 1 --global-batch-size 128 \
       --bf16 --use-flash-attn --use-distributed-optimizer"
CMD=" pretrain_gpt.py $GPT_ARGS --tokenizer-type TokenizerFromFile"
export LAUNCHER="python -u -m torch.distributed.run --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES \
    --rdzv_endpoint $MASTER_ADDR:6000"
echo $CMD
srun --wait=60 --jobid $SLURM_JOB_ID bash -c "$LAUNCHER --node_rank \$SLURM_PROCID: $CMD" 2>&1 | tee log.txt
