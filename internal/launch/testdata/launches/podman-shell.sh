#!/bin/bash
IMAGE=docker.io/lmsysorg/sglang:v0.5.18-cu129-amd64
run() {
  podman run --rm -it --device nvidia.com/gpu=all --network=host --security-opt=label=disable \
    -v "$HOME/.cache/huggingface:/root/.cache/huggingface" --env "HF_HUB_ENABLE_HF_TRANSFER=1" -w /sgl-workspace \
    "$IMAGE" bash -lc "$1"
}
run "pip install -q hf_transfer && python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3.2 --tp 8 \
  --kv-cache-dtype bf16 --page-size 64 --enable-dp-attention --dp-size 8 --speculative-algorithm EAGLE \
  --hicache-storage-backend file --enable-hierarchical-cache --hicache-ratio 2.5 \
  --hicache-storage-backend-extra-config '{\"prefetch_threshold\": 256}' --watchdog-timeout 1200"
