#!/usr/bin/env bash
. ./common.env
MODEL="${MODEL_ROOT}/gemma-3-12b-it"
CMD="python3 -m sglang.launch_server --config serve.yaml --model-path $MODEL"
CMD+=" --tp ${GPUS}"
while true; do
  $CMD --mem-fraction-static ${FRACTION:-0.84} \
    || echo "died with $?"
  sleep 10
done
