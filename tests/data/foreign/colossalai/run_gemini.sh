# Written anew after examples/language/gpt/gemini/run_gemini.sh of hpcaitech/ColossalAI.
set -x
export DISTPLAN=${DISTPLAN:-"CAI_Gemini"}
export GPUNUM=${GPUNUM:-4}
export BATCH_SIZE=${BATCH_SIZE:-16}
export MODEL_TYPE=${MODEL_TYPE:-"gpt2_medium"}
mkdir -p gemini_logs
torchrun --standalone --nproc_per_node=${GPUNUM} ./train_gpt_demo.py \
--model_type=${MODEL_TYPE} --batch_size=${BATCH_SIZE} --distplan=${DISTPLAN} --placement cpu \
2>&1 | tee ./gemini_logs/${MODEL_TYPE}_gpu_${GPUNUM}.log
