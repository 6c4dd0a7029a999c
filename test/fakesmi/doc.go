// Command fakesmi plays nvidia-smi for tests: eight idle GPUs of 96 GB, and on them what the claim files say that
// sim-server writes (test/fakenvml/README.md has their format). Called nvidia-smi and put first in the PATH, it shows a host that
// has no library to ask, as sgtune-agent has none, memory that a server holds and gives back.
//
// The claims lie in the folder "claims" beside the program. It answers --query-gpu, --query-compute-apps and
// --query-remapped-rows in the format csv,noheader,nounits.
package main
