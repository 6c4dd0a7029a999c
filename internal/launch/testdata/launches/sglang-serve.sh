#!/bin/bash
eval "$(conda shell.bash hook)"
conda activate sglang
taskset -c 0-31 sglang serve openai/gpt-oss-120b --tp 4 --model-type llm --mem-fraction-static 0.86 \
  --reasoning-parser gpt-oss --port 8080 --stream-interval 2
