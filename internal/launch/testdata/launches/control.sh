#!/bin/bash
# control.sh start|stop|status
NAME=llm
LOG=/var/log/$NAME.log
BIN=/opt/sglang/bin

start() {
  local tp=8
  cd /srv/$NAME || exit 1
  setsid "$BIN/python" -m sglang.launch_server --model-path /models/Qwen3-Next-80B --tp "$tp" \
    --mamba-full-memory-ratio 0.7 --context-length 262144 --max-mamba-cache-size 160 \
    --watchdog-timeout 900 >> "$LOG" 2>&1 &
  echo $! > /run/$NAME.pid
}

stop() { kill -TERM "$(cat /run/$NAME.pid)"; }

case "$1" in
  start) start ;;
  stop) stop ;;
  status) kill -0 "$(cat /run/$NAME.pid)" && echo up ;;
  *) echo "usage: $0 start|stop|status"; exit 2 ;;
esac
