package simulator

import (
	"fmt"
	"strings"
	"time"

	"sgtune/sglang"
)

// frame is one line pair of a Python traceback.
type frame struct {
	file string
	line int
	in   string
	code string
}

func traceback(last string, frames ...frame) string {
	var b strings.Builder
	b.WriteString("Traceback (most recent call last):\n")
	for _, f := range frames {
		fmt.Fprintf(&b, "  File \".../sglang/%s\", line %d, in %s\n    %s\n", f.file, f.line, f.in, f.code)
	}
	b.WriteString(last + "\n")
	return b.String()
}

// refusalTraceback is a combination of flags that SGLang refuses in the main process.
func refusalTraceback(err error) string {
	return traceback(err.Error(),
		frame{"launch_server.py", 31, "<module>", "server_args = prepare_server_args(sys.argv[1:])"},
		frame{"srt/server_args.py", 2190, "__post_init__", "self.handle_cache_compatibility()"})
}

// initTraceback is a scheduler that vanished while the server waited for it.
func initTraceback(last string) string {
	return traceback(last,
		frame{"launch_server.py", 31, "<module>", "run_server(server_args)"},
		frame{"srt/entrypoints/http_server.py", 1964, "launch_server", "_launch_subprocesses("},
		frame{"srt/entrypoints/engine.py", 1206, "_wait_for_scheduler_ready", "raise _scheduler_died_error(i, scheduler_procs[i])"})
}

// loadTraceback is an exception in a scheduler that was still loading.
func loadTraceback(s *server, at float64, f *Failure) string {
	frames := []frame{
		{"srt/managers/scheduler.py", 3601, "run_scheduler_process", "scheduler = Scheduler("},
		{"srt/managers/scheduler.py", 412, "__init__", "self.init_model_worker()"},
	}
	switch f.Phase {
	case sglang.PhaseWeightLoad:
		frames = append(frames,
			frame{"srt/model_executor/model_runner.py", 1012, "load_model", "self.model = get_model("},
			frame{"srt/model_loader/loader.py", 655, "load_model", "self.load_weights_and_postprocess("})
	case sglang.PhaseKVPool:
		frames = append(frames, poolFrame(s.l.d))
	case sglang.PhaseGraphCapture:
		frames = append(frames, frame{"srt/model_executor/runner/cuda_graph_runner.py", 541, "__init__", "raise Exception("})
	case sglang.PhaseHostPool:
		frames = append(frames, hostPoolFrames(s.l.d)...)
	default:
		frames = append(frames, frame{"srt/model_executor/model_runner.py", 240, "initialize", "self.init_memory_pool()"})
	}
	return stamp(s, at, f.Rank) + "Scheduler hit an exception: " + traceback(f.Text, frames...) + "\n"
}

// poolFrame is where the KV pool is sized.
func poolFrame(d *dialect) frame {
	if d.release < r0523 {
		return frame{"srt/model_executor/model_runner.py", 1145, "init_memory_pool", "raise RuntimeError("}
	}
	return frame{"srt/mem_cache/kv_cache_configurator.py", 3021, "_profile_available_bytes", "raise ValueError("}
}

// hostPoolFrames is where the host pool is checked.
func hostPoolFrames(d *dialect) []frame {
	if d.release < r0523 {
		return []frame{
			{"srt/managers/scheduler.py", 604, "init_memory_pool_and_cache", "self.tree_cache = HiRadixCache("},
			{"srt/mem_cache/memory_pool_host.py", 77, "__init__", "raise ValueError("},
		}
	}
	return []frame{
		{"srt/managers/scheduler.py", 871, "init_memory_pool_and_cache", "self.tree_cache = create_tree_cache("},
		{"srt/mem_cache/pool_host/base.py", 178, "__init__", "raise ValueError("},
	}
}

// forwardTraceback is a scheduler that died in a prefill, and what its siblings print after it.
func forwardTraceback(s *server, f *Failure) string {
	frames := []frame{
		{"srt/managers/scheduler.py", 3616, "run_scheduler_process", "scheduler.run_event_loop()"},
		{"srt/managers/scheduler.py", 3497, "dispatch_event_loop", "scheduler.event_loop_overlap()"},
		{"srt/managers/scheduler.py", 1361, "event_loop_overlap", "batch_result = self.run_batch(batch)"},
		{"srt/managers/scheduler.py", 2684, "run_batch", "batch_result = self.model_worker.forward_batch_generation("},
		{"srt/managers/tp_worker.py", 460, "forward_batch_generation", "out = self.model_runner.forward("},
		{"srt/model_executor/model_runner.py", 2590, "forward_extend", "return self.model.forward("},
		{"srt/models/deepseek_v2.py", 1711, "forward", "output = self.experts(hidden_states, topk_output)"},
	}
	var b strings.Builder
	b.WriteString(f.Before + stamp(s, f.At, f.Rank) + "Scheduler hit an exception: " + traceback(f.Text, frames...) + "\n")
	const sibling = "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.cpp:94, remote process exited or there was a network error"
	for _, r := range s.l.sortedRanks(uint64(f.At)) {
		if r != f.Rank {
			b.WriteString(stamp(s, f.At, r) + "Scheduler hit an exception: " + traceback(sibling, frames...) + "\n")
		}
	}
	return b.String()
}

// ncclFailure is a collective operation that timed out: rank 3 notices first.
func (s *server) ncclFailure() *Failure {
	const rank, limitMS = 3, 600000
	at := s.clock.now()
	when := s.log.base.Add(time.Duration(at * float64(time.Second)))
	return &Failure{
		Phase: sglang.PhaseDecode, Cause: "nccl_error", At: at, Rank: rank,
		Before: fmt.Sprintf("[rank%d]:[E%s ProcessGroupNCCL.cpp:632] [Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4192, OpType=ALLREDUCE, NumelIn=917504, NumelOut=917504, Timeout(ms)=%d) ran for %d milliseconds before timing out.\n",
			rank, when.Format("0102 15:04:05.000000000"), rank, limitMS, limitMS+17),
		Text: "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3356, unhandled cuda error, NCCL version 2.27.3",
	}
}

// cudaFailure is a kernel that read where it must not.
func (s *server) cudaFailure() *Failure {
	return &Failure{
		Phase: sglang.PhaseDecode, Cause: "cuda_error", At: s.clock.now(), Rank: s.l.b.smallest(),
		Text: "RuntimeError: CUDA error: an illegal memory access was encountered",
	}
}

// stamp is the prefix of a rank's line.
func stamp(s *server, at float64, rank int) string {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	n := len(s.log.buf)
	s.log.prefix(at, rank)
	text := string(s.log.buf[n:])
	s.log.buf = s.log.buf[:n]
	return text
}
