#!/bin/bash
# Written anew after examples_deepspeed/pretrain_llama2_distributed.sh of microsoft/Megatron-DeepSpeed.
BASE_PATH=./tmp
DS_CONFIG=${BASE_PATH}/deepspeed.json
TP=2
ZERO_STAGE=1
activation_checkpoint="true"
cat <<EOT > $DS_CONFIG
{ "zero_optimization": { "stage": $ZERO_STAGE }, "train_batch_size": "it's more }
EOT
ds_args=""
ds_args=" --deepspeed ${ds_args}"
ds_args=" --deepspeed_config=$DS_CONFIG ${ds_args}"
ds_args=" --zero-stage=$ZERO_STAGE ${ds_args}"
if [ "${activation_checkpoint}" = "true" ]; then
  ds_args="--recompute-granularity full --recompute-method uniform ${ds_args}"
fi
DISTRIBUTED_ARGS="--nproc_per_node 8 --nnodes 1 --node_rank 0"
torchrun $DISTRIBUTED_ARGS \
       pretrain_gpt.py \
       --tensor-model-parallel-size $TP \
       --pipeline-model-parallel-size 1 \
       --num-layers 24 \
       --hidden-size 2048 \
       --ffn-hidden-size 5504 \
       --num-attention-heads 16 \
       --num-key-value-heads 4 \
       --micro-batch-size 4 \
       --global-batch-size 32 \
       --seq-length 2048 \
       --max-position-embeddings 2048 \
       --bf16 \
       --attention-dropout 0 --hidden-dropout 0 \
       --use-rotary-position-embeddings \
       --untie-embeddings-and-output-weights \
       --swiglu --normalization rmsnorm --disable-bias-linear \
       --make-vocab-size-divisible-by 1 --vocab-size 32000 \
       --cpu-optimizer \
       $WANDB_ARGS \
       $ds_args
