#!/bin/bash
# one variable a concern, as such scripts grow
MODEL="/models/Qwen2.5-VL-72B-Instruct"
COMMON="--trust-remote-code --enable-cache-report"
declare -a MEM=( --mem-fraction-static 0.82 --max-total-tokens 150k )
SPEC=""
GRAPH="--cuda-graph-bs $(seq -s ' ' 1 4) 8 16"
BS=({1..4} 8 16 32)
LORA="--lora-paths a=/loras/a b=/loras/b --max-loras-per-batch 2"
unset FOO
set -- --tp 4 "--served-model-name=vl"
python3 -m sglang.launch_server --model-path "${MODEL}" $COMMON "${MEM[@]}" $SPEC $LORA \
  --cuda-graph-bs-decode "${BS[@]}" --mm-attention-backend fa3 "$@" ${NOT_SET_AT_ALL:+--log-requests}
