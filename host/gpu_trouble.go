package host

import "strings"

// GPUTrouble is why there are no GPU facts: the closed list behind Usage.GPUNote.
type GPUTrouble string

// Troubles.
const (
	NoTrouble        GPUTrouble = ""            // the GPUs were read
	TroubleNoLibrary GPUTrouble = "no_library"  // neither NVIDIA's library nor nvidia-smi is there
	TroubleNoDriver  GPUTrouble = "no_driver"   // not loaded, of another version than its library, or not ours to ask
	TroubleNoGPU     GPUTrouble = "no_gpu"      // the driver lists none
	TroubleOld       GPUTrouble = "old_driver"  // its library lacks a function
	TroubleHung      GPUTrouble = "driver_hung" // no answer within the time
	TroubleLost      GPUTrouble = "gpu_lost"    // a GPU fell off the bus or wants a reset
	TroubleOther     GPUTrouble = "other"       // the probe failed, or a GPU did not tell its memory
)

// Phrases of notes that say which trouble it is. Every note with such a trouble is made with its phrase.
const (
	phraseNoLibrary = "NVIDIA library not found"
	phraseNoSMI     = "nvidia-smi is not installed or not in PATH" // where it is the only way
	phraseNoDriver  = "the NVIDIA driver cannot be used"
	phraseNoGPU     = "lists no GPU"
	phraseOld       = "the NVIDIA driver is too old"
	phraseHung      = "did not answer within"
	phraseHangs     = "still hangs in the NVIDIA driver"
	phraseLost      = "the GPU is lost"
)

// lost comes first: what a driver says of a lost GPU may hold other words too.
var troublePhrases = []struct {
	phrase  string
	trouble GPUTrouble
}{
	{phraseLost, TroubleLost},
	{phraseHung, TroubleHung},
	{phraseHangs, TroubleHung},
	{phraseOld, TroubleOld},
	{phraseNoDriver, TroubleNoDriver},
	{phraseNoLibrary, TroubleNoLibrary},
	{phraseNoGPU, TroubleNoGPU},
}

// TroubleOf says what a Usage.GPUNote is about. It goes by the note alone, so that it works for a host behind
// a pipe too.
func TroubleOf(note string) GPUTrouble {
	if note == "" {
		return NoTrouble
	}
	if strings.HasPrefix(note, notePrefix+phraseNoSMI) {
		return TroubleNoLibrary
	}
	for _, p := range troublePhrases {
		if strings.Contains(note, p.phrase) {
			return p.trouble
		}
	}
	return TroubleOther
}
