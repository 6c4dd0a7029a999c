package trial_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/sglang"
	"sgtune/trial"
)

// facts reads a log as the watch does.
func facts(log string) trial.Facts {
	reader := sglang.NewReader()
	reader.Feed([]byte(log))
	reader.Close()
	f := trial.Facts{Log: reader.Facts(), Ending: trial.EndDied, KernelOOM: 0, CgroupOOM: -1}
	f.First, f.Last = f.Log.First, f.Log.Last
	f.Exit.Exit = host.Exit{Code: -1, Signal: 9, Known: true}
	return f
}

func report(valid bool, invalid string) *benchmark.Report {
	r := &benchmark.Report{Valid: valid, Invalid: invalid, OutputTokS: 1240, Advice: "do this"}
	return r
}

const died9 = "RuntimeError: Rank 1 scheduler died during initialization (exit code: -9).\n"

func TestClassify(t *testing.T) {
	t.Parallel()
	const served = startLog + readyLine + "[2026-01-01 22:02:00 TP0] Decode batch, #running-req: 41, #token: 100, token usage: 0.05, cuda graph: True, gen throughput (token/s): 900.00, #queue-req: 0\n"
	for _, c := range []struct {
		name   string
		log    string
		change func(*trial.Facts)
		want   string // outcome / phase / cause, blames
		text   string
		advice string // first one
	}{
		{"ok", served, func(f *trial.Facts) {
			f.Ending, f.Exit, f.Ready = trial.EndDone, trial.Exit{Alive: true}, true
			f.Levels = []trial.Level{{Concurrency: 120, Report: report(true, "")}}
		}, "ok / decode / none, yes", "1240 tok/s at 120 clients, 41 requests", "accept_result"},
		{"one bad level of two does not spoil the other", served, func(f *trial.Facts) {
			f.Ending, f.Exit = trial.EndDone, trial.Exit{Alive: true}
			f.Levels = []trial.Level{{Concurrency: 40, Report: report(false, "client_limited")}, {Concurrency: 120, Report: report(true, "")}}
		}, "ok / decode / none, yes", "120 clients", "accept_result"},
		{"one level under which the client stood still spoils the trial: it may be the best one", served, func(f *trial.Facts) {
			f.Ending, f.Exit = trial.EndDone, trial.Exit{Alive: true}
			f.Levels = []trial.Level{{Concurrency: 40, Report: report(true, "")}, {Concurrency: 120, Report: report(false, "client_hung")}}
		}, "bench_invalid / bench / client_hung, no", "120 clients", "rerun_bench"},
		{"client limited", served, func(f *trial.Facts) {
			f.Ending, f.Exit = trial.EndDone, trial.Exit{Alive: true}
			f.Levels = []trial.Level{{Concurrency: 120, Report: report(false, "client_limited")}}
		}, "bench_invalid / bench / client_limited, no", "do this", "rerun_bench"},
		{"retractions dominate", served + strings.Repeat("[2026-01-01 22:03:00 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_tokens_gained: 100, #new_token_ratio: 0.5 -> 0.7\n", 12), func(f *trial.Facts) {
			f.Ending, f.Exit = trial.EndDone, trial.Exit{Alive: true}
		}, "degraded / decode / retraction_storm, yes", "24 requests", "raise_schedule_conservativeness"},
		{"one request's exception does not end a server", served + "Traceback (most recent call last):\n  File \"x.py\", line 1, in f\nValueError: bad request\n", func(f *trial.Facts) {
			f.Ending, f.Exit = trial.EndDone, trial.Exit{Alive: true}
		}, "ok / decode / none, yes", "", "accept_result"},
		{
			"out of memory in prefill", served + prefillOOM, func(f *trial.Facts) { f.UnderLoad = 372 * time.Second },
			"gpu_oom / prefill / prefill_activation, yes", "GPU memory ran out in prefill 6m12s into the load: it wanted 1.75 GiB, 0.82 GiB was free", "lower_mem_fraction",
		},
		{
			"the first cause counts, whatever follows and whoever presses Ctrl-C", served + prefillOOM + "[rank0]: torch.distributed.DistBackendError: NCCL error in: x\n", func(f *trial.Facts) { f.Ending = trial.EndPerson },
			"gpu_oom / prefill / prefill_activation, yes", "", "lower_mem_fraction",
		},
		{
			"fraction too low", startLog[:strings.Index(startLog, "[2026-01-01 22:01:00 TP0] KV")] + "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.7. Raise --mem-fraction-static above 0.769\n", nil,
			"gpu_oom / kv_pool / kv_pool_nonpositive, yes", "0.769", "raise_mem_fraction",
		},
		{
			"out of memory in graphs", startLog + "[2026-01-01 22:01:06 TP0] Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, avail mem=0.31 GB\nException: Capture cuda graph failed: CUDA out of memory. Tried to allocate 64.00 MiB.\n", nil,
			"gpu_oom / graph_capture / graph_capture_oom, yes", "64 MiB", "lower_mem_fraction",
		},
		{
			"no driver at the host pool", startLog + hostPoolLine + "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU\n", nil,
			"env_fault / host_pool / no_gpu, no", "host_pool", "rerun_same",
		},
		{
			"host pool refused", startLog + "ValueError: Not enough host memory available. Requesting 300.00 GB but only have 54.00 GB free. Please reduce\n", nil,
			"host_oom / host_pool / hicache_check_refused, yes", "300.00 GB per rank with 54.00 GB free", "lower_hicache_size",
		},
		{
			"pools together too big", startLog + hostPoolLine + died9, func(f *trial.Facts) { f.KernelOOM, f.HostRAM = 1, 449e9 },
			"host_oom / host_pool / hicache_oversubscribed, yes", "600 GB (2 x 300), the host has 449 GB", "lower_hicache_size",
		},
		{"container limit", startLog + died9, func(f *trial.Facts) { f.CgroupOOM = 2 }, "host_oom / kv_pool / cgroup_limit, yes", "container", "raise_container_memory"},
		{"killed, counter known and still", startLog + died9, nil, "crashed / kv_pool / silent_exit, partly", "counter did not move", "rerun_same"},
		{
			"killed while pinning, counter unknown", startLog + hostPoolLine + died9, func(f *trial.Facts) { f.KernelOOM = -1 },
			"host_oom / host_pool / kernel_oom_kill, yes", "most likely", "lower_hicache_size",
		},
		{"killed elsewhere, counter unknown", startLog + died9, func(f *trial.Facts) { f.KernelOOM = -1 }, "unknown / kv_pool / unknown, no", "by whom is not known", "rerun_same"},
		{"unknown flag", "usage: x\nlaunch_server.py: error: unrecognized arguments: --reasoning_parser kimi\n", nil, "config_rejected / launch / unknown_flag, yes", "--reasoning_parser", "fix_flag"},
		{"bad value", "usage: x\nlaunch_server.py: error: argument --mem-fraction-static: invalid float value: 'much'\n", nil, "config_rejected / launch / bad_value, yes", "much", "fix_flag"},
		{
			"flags exclude each other", "Traceback (most recent call last):\n  File \"x.py\", line 1, in f\nAssertionError: chunked_prefill_size must be a multiple of page_size\n", nil,
			"config_rejected / launch / unsupported_combination, yes", "multiple of page_size", "fix_flag",
		},
		{"the same exception later is a crash", startLog + "Traceback (most recent call last):\n  File \"x.py\", line 1, in f\nAssertionError: x\n", nil, "crashed / kv_pool / python_exception, partly", "AssertionError", "rerun_same"},
		{
			"a GPU is occupied", "[2026-01-01 22:00:10] server_args={'tp_size': 2}\n[2026-01-01 22:00:20 TP0] Init parallel begin.\nValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=5.3, local_gpu_memory=78.5\n", nil,
			"env_fault / dist_init / gpu_memory_leftover, no", "5.3 of 78.5 GB", "free_gpu_memory",
		},
		{"ranks lost each other", served + "[rank3]: torch.distributed.DistBackendError: NCCL error in: x\n", nil, "crashed / decode / nccl_error, no", "", "check_peer_nodes"},
		{
			"illegal access", served + "[2026-01-01 22:05:00 TP1] Scheduler hit an exception: Traceback (most recent call last):\n  File \"x.py\", line 1, in f\nRuntimeError: CUDA error: an illegal memory access was encountered\n", nil,
			"crashed / decode / cuda_error, partly", "illegal memory access", "rerun_same",
		},
		{"watchdog", served + "[2026-01-01 22:15:00 TP0] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)\n", nil, "stuck / decode / watchdog_timeout, partly", "300 s", "rerun_same"},
		{"silent exit", startLog, func(f *trial.Facts) { f.Exit.Exit = host.Exit{Code: 1, Known: true} }, "crashed / kv_pool / silent_exit, partly", "exit status 1", "rerun_same"},
		{"somebody else's SIGTERM", startLog, func(f *trial.Facts) { f.Exit.Exit = host.Exit{Code: -1, Signal: 15, Known: true} }, "aborted / shutdown / operator_signal, no", "outside", "rerun_same"},
		{"time is over", served, func(f *trial.Facts) { f.Ending, f.Exit = trial.EndDeadline, trial.Exit{Alive: true} }, "aborted / decode / job_time_limit, no", "", "rerun_same"},
		{"stuck", served, func(f *trial.Facts) {
			f.Ending, f.Exit, f.Ready, f.Silent = trial.EndStuck, trial.Exit{Alive: true}, true, 90*time.Second
		}, "stuck / decode / no_progress, partly", "1m30s", "rerun_same"},
		{"an empty log, nothing known", "", func(f *trial.Facts) { *f = trial.Facts{KernelOOM: -1, CgroupOOM: -1} }, "unknown / launch / unknown, no", "empty", "rerun_same"},
		{"alive, not ready, no limit", startLog, func(f *trial.Facts) { f.Ending, f.Exit = trial.EndUnknown, trial.Exit{Alive: true} }, "unknown / kv_pool / unknown, no", "still starting", "rerun_same"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := facts(c.log)
			if c.change != nil {
				c.change(&f)
			}
			v := trial.Classify(f)
			if got := fmt.Sprintf("%s / %s / %s, %s", v.Outcome, v.Phase, v.Cause, v.Blames); got != c.want {
				t.Errorf("verdict %s, want %s\n%s", got, c.want, v.Text)
			}
			if !strings.Contains(v.Text, c.text) {
				t.Errorf("text %q lacks %q", v.Text, c.text)
			}
			if first := strings.Join(v.Advice[:min(1, len(v.Advice))], ""); first != c.advice {
				t.Errorf("advice %v, want %q first", v.Advice, c.advice)
			}
		})
	}
}

// TestVocabulary: every word of every verdict is of the closed lists.
func TestVocabulary(t *testing.T) {
	t.Parallel()
	codes := strings.Fields(`accept_result raise_mem_fraction lower_mem_fraction lower_chunked_prefill lower_max_running lower_cuda_graph_max_bs lower_hicache_size
		raise_hicache_size disable_hicache use_reusing_workload raise_page_size raise_mamba_slots raise_schedule_conservativeness lower_schedule_conservativeness
		use_bf16_kv provide_kv_scales more_gpus_or_smaller_model fix_flag free_port free_gpu_memory raise_shm raise_container_memory bypass_proxy check_peer_nodes
		raise_ready_timeout raise_job_time_limit prewarm_cache fix_probe fix_bind_or_tunnel rerun_same rerun_bench upgrade_sglang report_bug`)
	causes := strings.Fields(`none unknown weights_too_big kv_pool_nonpositive graph_capture_oom prefill_activation decode_activation sampling_logits hicache_device_buffers
		hicache_check_refused hicache_oversubscribed kernel_oom_kill cgroup_limit unknown_flag bad_value unsupported_combination hicache_smaller_than_device
		port_in_use no_gpu gpu_memory_leftover shm_too_small http_proxy model_missing gpu_lost ecc mig_on python_exception cuda_error nccl_error silent_exit
		slow_weight_load load_barrier_timeout jit_compile slow_graph_capture peer_missing hicache_deadlock watchdog_timeout no_progress
		health_body_empty health_busy_timeout health_starting retraction_storm failed_requests wrong_token_count client_hung client_limited operator_signal job_time_limit`)
	kinds := strings.Fields(`gpu_oom graph_failed not_enough_memory weights_leave_no_kv host_mem_insufficient host_register_failed hicache_smaller_refused kernel_oom
		argparse_error config_unsupported flags_conflict no_accelerator mem_unbalanced port_in_use shm_too_small model_missing nccl_error cuda_illegal watchdog
		python_fatal pool_leak kv_alloc_failed warmup_failed traceback_last something_new`)
	phases := []sglang.Phase{
		sglang.PhaseLaunch, sglang.PhaseDistInit, sglang.PhaseWeightLoad, sglang.PhaseKVPool, sglang.PhaseGraphCapture, sglang.PhaseHostPool, sglang.PhaseHTTPStart,
		sglang.PhaseWarmup, sglang.PhaseReady, sglang.PhasePrefill, sglang.PhaseDecode, sglang.PhaseShutdown,
	}
	endings := []trial.Ending{
		trial.EndUnknown, trial.EndDone, trial.EndPruned, trial.EndDied, trial.EndTimeout, trial.EndStuck, trial.EndPerson, trial.EndDeadline, trial.EndOutside,
		trial.EndVoid, trial.EndPort, trial.EndNotStarted, trial.EndHost, trial.EndUnguarded, trial.EndReplay, trial.EndSgtune,
	}
	for _, kind := range append(kinds, "") {
		for _, phase := range phases {
			for _, ending := range endings {
				f := trial.Facts{Ending: ending, KernelOOM: -1, CgroupOOM: -1}
				f.Log.Phase = phase
				if kind != "" {
					f.Log.Fatal = []sglang.Event{{Kind: kind, Phase: phase, Line: 7, Text: "text"}}
				}
				v := trial.Classify(f)
				for _, a := range v.Advice {
					if !slices.Contains(codes, a) {
						t.Errorf("%s in %s after %s: advice %q is not of the list", kind, phase, ending, a)
					}
				}
				if !slices.Contains(causes, v.Cause) || v.Outcome == "" || v.Phase == "" || v.Blames == "" || v.Text == "" {
					t.Errorf("%s in %s after %s: verdict %+v", kind, phase, ending, v)
				}
			}
		}
	}
}
