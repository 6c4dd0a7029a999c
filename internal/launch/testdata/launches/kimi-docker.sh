# Kimi K2.5, INT4, one node
docker rm -f kimi 2>/dev/null || true
docker run -d --name kimi --restart unless-stopped \
    --gpus all --shm-size 32g --ipc=host --ulimit memlock=-1 \
    -p 30000:30000 \
    -v /data/models:/models:ro \
    -e HF_TOKEN=hf_qW8rTz1mNcVb5XkLp0Js \
    -e NCCL_DEBUG=WARN -e SGLANG_VLM_CACHE_SIZE_MB=0 \
    lmsysorg/sglang:v0.5.9-cu129 \
    python3 -m sglang.launch_server \
        --model-path /models/Kimi-K2.5 \
        --tp 8 --mem-fraction-static=0.88 \
        --enable-hierarchical-cache --hicache-size 48 --hicache-write-policy write_through \
        --tool-call-parser kimi_k2 --reasoning-parser kimi_k2 \
        --trust-remote-code --host 0.0.0.0 --port 30000
docker logs -f kimi
