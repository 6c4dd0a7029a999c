#!/bin/sh
# the simulated server, for trying things out
exec sgtune sim-server --model-path /models/Kimi-K2.5 --tp 8 --mem-fraction-static 0.85 --port 30000 \
  --sim-profile kimi-8x96 --sim-time-scale 200 --sim-version 0.5.9
