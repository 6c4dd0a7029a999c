package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseUnixListeners(t *testing.T) {
	t.Parallel()
	const table = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 12345 /tmp/tmpab_1
0000000000000000: 00000003 00000000 00000000 0001 03 12346 /tmp/tmpab_1
0000000000000000: 00000002 00000000 00010000 0001 01 777 @abstract
0000000000000000: 00000002 00000000 00010000 0001 01 778 /tmp/a b
0000000000000000: 00000002 00000000 00000000 0002 01 779
broken
`
	if diff := cmp.Diff(map[string]string{"12345": "/tmp/tmpab_1", "778": "/tmp/a b"}, parseUnixListeners([]byte(table))); diff != "" {
		t.Error(diff)
	}
}

func TestParseMaps(t *testing.T) {
	t.Parallel()
	const maps = `7f0000000000-7f0000010000 rw-s 00000000 00:1b 4242                       /dev/shm/psm_1
7f0000010000-7f0000020000 rw-p 00000000 00:00 0 
7f0000020000-7f0000030000 r-xp 00000000 103:02 99                        /usr/lib/x y.so (deleted)
55d000000000-55d000001000 rw-p 00000000 00:00 0                          [heap]
nonsense
`
	want := map[fileOnDevice]bool{{0, 0x1b, 4242}: true, {0x103, 2, 99}: true}
	if diff := cmp.Diff(want, parseMaps([]byte(maps)), cmp.AllowUnexported(fileOnDevice{})); diff != "" {
		t.Error(diff)
	}
}

func TestSharedMemoryNames(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/dev/shm/psm_12ab": true, "/dev/shm/nccl-Ab12": true, "/dev/shm/sem.mp-1": true, "/dev/shm/sglang_loads_1_2.shm": true, "/dev/shm/torch_1_2_3": true,
		"/dev/shm/hf/psm_1": false, "/dev/shm/kimi": false, "/dev/shm/psm_1 (deleted)": true, "/tmp/psm_1": false, "/dev/shm/": false,
	} {
		if got := shmNamed(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
