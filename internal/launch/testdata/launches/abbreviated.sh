python -m sglang.launch_server --model meta-llama/Llama-3.1-8B-Instruct --tensor 2 --data-parallel-size 2 --mem-frac 0.9 \
    --chunked-prefill 4096 --max-running 128 --schedule-conserv 0.8 --cuda-graph-max-bs 256 --enable-mixed \
    --chunked-prefill-size 8192 --attention-back flashinfer --disable-radix
