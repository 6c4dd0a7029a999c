#!/bin/bash
for gpu in 0 1 2 3; do
  CUDA_VISIBLE_DEVICES=$gpu python3 -m sglang.launch_server --model-path /models/Qwen3-8B --mem-fraction-static 0.85 --port $((30000 + gpu)) &
done
wait
