# Written anew after examples_deepspeed/MoE/ds_pretrain_gpt_1.3B_MoE128.sh of microsoft/Megatron-DeepSpeed.
NUM_GPUS=64
EP_SIZE=128
if [[ $EP_SIZE -gt $NUM_GPUS ]]; then
    EP_PARALLEL_SIZE=$NUM_GPUS
else
    EP_PARALLEL_SIZE=$EP_SIZE
fi
TRAIN_ITERS=$(( 300000000000 * 3 / 512 / 2048 ))
megatron_options=" \
        --moe-expert-parallel-size ${EP_PARALLEL_SIZE} --num-experts ${EP_SIZE} \
        --micro-batch-size 8 --global-batch-size 512 --num-layers 24 --hidden-size 2048 --num-attention-heads 16 \
        --seq-length 2048 --max-position-embeddings 2048 --train-iters ${TRAIN_ITERS} \
        --rampup-batch-size 32 32 1953125 --fp16 --checkpoint-activations --save ${CHECKPOINT_PATH}"
run_cmd="deepspeed ${DIR}/../../pretrain_gpt.py ${megatron_options} &> log"
echo ${run_cmd}
eval ${run_cmd}
