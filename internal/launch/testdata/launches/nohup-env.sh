ulimit -n 65536
CUDA_VISIBLE_DEVICES=4,5,6,7 SGLANG_TORCH_PROFILER_DIR="/tmp/my traces" NCCL_P2P_DISABLE=1 nohup sudo -E -u svc numactl --cpunodebind=1 --membind=1 \
    /opt/venv/bin/python3 -m sglang.launch_server --model-path "/models/Llama 3.1 8B (int8)" \
    --tp 4 --quantization w8a8_int8 --num-continuous-decode-steps 4 --schedule-policy fcfs \
    --page-size 16 --chunked-prefill-size 4096 --skip-server-warmup > /var/log/sglang.log 2>&1 < /dev/null &
echo $! > /run/sglang.pid
