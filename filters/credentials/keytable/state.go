package keytable

import "encoding/binary"

// StateKey is the shared-data key under which keysync keeps State.
const StateKey = "feed"

// State is how far an edge has read the feed. It lives in shared data, so that
// a keysync that crashed goes on where it was, and so that a filter which does
// not find a key can tell "unknown" from "not loaded yet".
type State struct {
	Epoch    uint64
	Position uint64
	Cursor   Tag  // of the snapshot under way
	Ready    bool // a whole snapshot has been applied once
	Loading  bool // a snapshot is under way
}

const stateSize = 34

// Append appends the state's bytes to dst.
func (s State) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, s.Epoch)
	dst = binary.LittleEndian.AppendUint64(dst, s.Position)
	dst = append(dst, s.Cursor[:]...)
	return append(dst, flag(s.Ready), flag(s.Loading))
}

// ParseState reads what Append wrote; anything else is the zero State, which
// is not ready. It allocates nothing.
func ParseState(b []byte) State {
	if len(b) != stateSize {
		return State{}
	}
	s := State{Epoch: binary.LittleEndian.Uint64(b), Position: binary.LittleEndian.Uint64(b[8:])}
	copy(s.Cursor[:], b[16:32])
	s.Ready, s.Loading = b[32] == 1, b[33] == 1
	return s
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
