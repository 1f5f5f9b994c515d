# Written anew after examples/language/gpt/gemini/benchmark_gemini.sh of hpcaitech/ColossalAI.
for MODEL_TYPE in "gpt2_medium"; do
  for GPUNUM in 2 4; do
    if [ ${GPUNUM} -gt 8 ]; then
      continue
    fi
    MODEL_TYPE=${MODEL_TYPE} DISTPLAN=CAI_ZeRO2 BATCH_SIZE=2 GPUNUM=${GPUNUM} PLACEMENT=auto bash ./run_gemini.sh
  done
done
