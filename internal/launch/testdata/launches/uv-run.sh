#!/bin/sh
cd /srv/llm
HF_HUB_OFFLINE=1 uv run --python 3.12 --with 'sglang[all]==0.5.20' python -m sglang.launch_server \
  --model ./models/gemma-3-27b-it --tensor-parallel-size 2 --dtype bfloat16 \
  --cuda-graph-max-bs-decode 64 --enable-metrics --random-seed 42 \
  --swa-full-tokens-ratio 0.5
