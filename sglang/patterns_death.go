package sglang

// deathPatterns are how the launcher, the ranks and a shell tell of a death.
var deathPatterns = []pattern{
	// Death, as the launcher and the ranks tell it.
	{kind: "sigterm", starts: "SIGTERM received.", level: note, phase: PhaseShutdown},
	{kind: "graceful_exit", starts: "Gracefully exiting...", level: note, phase: PhaseShutdown, re: `Remaining number of requests (?P<remaining>\d+)`},
	{kind: "kill_tree", starts: "kill_process_tree called:", re: `parent_pid=(?P<pid>\d+), include_parent=(?P<Parent>True|False)`},
	{kind: "schedulers_killed", starts: "Schedulers still alive ", level: note, phase: PhaseShutdown},
	{kind: "sigquit", starts: "Received sigquit from a child proc", level: fatal},
	{kind: "sigquit", starts: "SIGQUIT received.", level: fatal},
	{kind: "child_crashed", starts: "Subprocess ", level: fatal, re: `^Subprocess (?P<Name>\S+) \(pid=(?P<pid>\d+)\) crashed with exit code (?P<child_exit_code>-?\d+)`},
	{kind: "scheduler_died_init", starts: "Rank ", level: fatal, re: `^Rank (?P<child_rank>\d+) scheduler is dead\.`},
	{kind: "child_exit", starts: "Exit code: ", level: fatal, re: `^Exit code: (?P<child_exit_code>-?\d+)`},
	{kind: "watchdog", starts: "Scheduler watchdog timeout", level: fatal, re: `watchdog_timeout=(?P<watchdog_timeout_s>[\d.]+), self\.soft=False`},
	{kind: "watchdog_soft", starts: "Scheduler watchdog timeout", level: note, re: `watchdog_timeout=(?P<watchdog_timeout_s>[\d.]+)`},
	{kind: "watchdog", starts: "Watchdog timeout", level: fatal, re: `watchdog_timeout=(?P<watchdog_timeout_s>[\d.]+)`},
	{kind: "pool_state", starts: "self.max_total_num_tokens=", re: `available_size=(?P<available_tokens>\d+), evictable_size=(?P<evictable_tokens>\d+)`},
	{
		kind: "hicache_stack", has: "radix_cache.py:",
		re: `^(?P<Function>(?:_?(?:writing|loading)_check|check_hicache_events|_?check_prefetch_progress|_?drain_storage_control_queues\w*|flush_write_through_acks|_all_reduce\w*|write_backup\w*|load_back|init_load_back|ready_to_load_host_cache|evict_host))\s+\(\S*radix_cache\.py:\d+\)`,
	},
	{
		kind: "hicache_stack", has: "cache_controller.py:",
		re: `^(?P<Function>write|load|start_writing|start_loading|evict_host|get_hash_str)\s+\(\S*cache_controller\.py:\d+\)`,
	},
	{kind: "pool_state", starts: "self.cur_batch.batch_size()=", re: `.*available_size\(\)=(?P<available_tokens>\d+), .*evictable_size\(\)=(?P<evictable_tokens>\d+)`},
	{kind: "pool_state", starts: "self.full_tokens_per_layer=", re: `full_available_size=(?P<available_tokens>\d+), full_evictable_size=(?P<evictable_tokens>\d+)`},
	{kind: "python_fatal", starts: "Fatal Python error:", level: fatal, re: `^Fatal Python error: (?P<Msg>.*)`},
	{kind: "killed", starts: "Killed", level: note, re: `^Killed$`},
	{kind: "child_died", starts: "Scheduler or DataParallelController ", level: fatal, re: `terminated with (?P<child_exit_code>-?\d+)`},
	{kind: "killed", has: " Killed ", level: note, re: `^\S+: line \d+:\s+\d+ Killed `}, // bash, of a command in a script
	{kind: "killed", starts: "Killed ", level: note, re: `^Killed\s+\(?(?:python|sglang)`},
	{kind: "terminated", starts: "Terminated", level: note, re: `^Terminated$`},
	{kind: "terminated", has: " Terminated ", level: note, re: `^\S+: line \d+:\s+\d+ Terminated `},
	{kind: "native_crash", starts: "Segmentation fault", level: fatal},
	{kind: "native_crash", has: " Segmentation fault ", level: fatal, re: `^\S+: line \d+:\s+\d+ Segmentation fault `},
	{kind: "native_crash", starts: "!!!!!!! Segfault encountered", level: fatal},
	{kind: "terminate", starts: "terminate called", level: note},

	// Whoever manages the job.
	{kind: "job_time_limit", has: "DUE TO TIME LIMIT", level: note, re: `(?:CANCELLED|JOB|STEP)`},
	{kind: "job_time_limit", has: "walltime", level: note, re: `(?i)job killed: walltime`},
	{kind: "job_time_limit", has: "DeadlineExceeded", level: note},
	{kind: "job_time_limit", has: "TIMEOUT", level: note, re: `(?i)(?:slurm|job)\b.*(?:state|reason|ended)\S*[ =:]+TIMEOUT\b`},
	{kind: "job_cancelled", has: "CANCELLED AT ", level: note},
	{kind: "job_cancelled", has: "srun: ", level: note, re: `srun: (?:forcing job termination|Job step aborted|got SIGCONT|interrupt)`},
	{kind: "job_cancelled", has: "sending signal TERM to command", level: note},
}
