#!/usr/bin/env bash
# DeepSeek-V3 on two nodes of 8 GPUs. Usage: ./deepseek-two-nodes.sh [NODE_RANK]
set -euo pipefail

SCRIPT_DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
MODEL_PATH=${MODEL_PATH:-/models/DeepSeek-V3-0324}
NODE_RANK=${1:-0}
HEAD=10.10.0.11

export NCCL_IB_HCA=mlx5_0,mlx5_1,mlx5_2,mlx5_3
export NCCL_SOCKET_IFNAME=bond0 GLOO_SOCKET_IFNAME=bond0
export HF_TOKEN=hf_Zk3sQp0aB9xYv7LtRw2e   # not a real one

source /opt/sglang/venv/bin/activate

ARGS=(
  --model-path "$MODEL_PATH"
  --tp 16                       # 8 a node
  --nnodes 2 --node-rank "$NODE_RANK"
  --dist-init-addr "${HEAD}:20000"
  --trust-remote-code
)
if [[ "${DP_ATTENTION:-1}" == 1 ]]; then
  ARGS+=(--enable-dp-attention --dp 8)
else
  ARGS+=(--max-running-requests 64)
fi
if [ -n "${EXTRA:-}" ]; then
  ARGS+=($EXTRA)
fi

mkdir -p "$SCRIPT_DIR/logs"
exec python3 -m sglang.launch_server "${ARGS[@]}" \
  --host 0.0.0.0 --port 30000 \
  --mem-fraction-static 0.89 \
  --chunked-prefill-size 65536 2>&1 | tee "$SCRIPT_DIR/logs/node$NODE_RANK.log"
