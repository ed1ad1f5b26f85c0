package wasmhost

import (
	"encoding/binary"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/limits/counter"
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

// maxTries bounds how often the list of hot windows is competed for.
const maxTries = 16

// windows are the windows in shared data; it implements counter.Store.
type windows struct{}

// windowKey is the key of the window that is asked for or set; one for the VM,
// since it would go to the heap.
var windowKey sharedlimit.Place

// Get reads a window into the one buffer for it.
func (windows) Get(p sharedlimit.Place) (ratelimit.Window, uint32) {
	windowKey = p
	b, version, err := sharedData(text(windowKey[:]), windowBuffer[:])
	if err != nil {
		return nil, 0
	}
	return b, version
}

// Set writes a window.
func (windows) Set(p sharedlimit.Place, w ratelimit.Window, version uint32) bool {
	windowKey = p
	return proxywasm.SetSharedData(text(windowKey[:]), w, version) == nil
}

// Take counts one request in the window of id; see counter.Counter.Take. A window
// that becomes hot is put on the list that Hot returns.
func Take(c *counter.Counter, k ratelimit.Kind, id ratelimit.ID, l ratelimit.Limit, f ratelimit.Fleet, now int64) ratelimit.Result {
	r, at, hot := c.Take(windows{}, k, id, l, f, now)
	if hot {
		addHot(at)
	}
	return r
}

// Look is what Take would return; it counts nothing.
func Look(k ratelimit.Kind, id ratelimit.ID, l ratelimit.Limit, f ratelimit.Fleet, now int64) ratelimit.Result {
	return counter.Look(windows{}, k, id, l, f, now)
}

// GiveBack takes back what has just been counted in the window of id.
func GiveBack(c *counter.Counter, k ratelimit.Kind, id ratelimit.ID, now int64) {
	c.GiveBack(windows{}, k, id, now)
}

// setOthers puts what other edges have counted behind the window of id, and returns its
// place.
func setOthers(id ratelimit.ID, o ratelimit.Others) sharedlimit.Place {
	return counter.SetOthers(windows{}, id, o)
}

// The hot windows and the state of the fleet are in shared data too: the
// workers and keysync tell each other by them.
const (
	hotKey   = "hot"
	stateKey = "fleet"
	shareKey = "shares"
)

// addHot puts a place on the list of hot ones. A list that is full is left as
// it is: the window is found hot again in the next second.
func addHot(p sharedlimit.Place) {
	for range maxTries {
		b, cas, _ := proxywasm.GetSharedData(hotKey)
		if len(b) >= sharedlimit.MaxEntries*len(p) {
			return
		}
		if len(b) < len(p) {
			b = nil
		}
		if proxywasm.SetSharedData(hotKey, append(b, p[:]...), cas) == nil {
			return
		}
	}
}

// Hot empties the list of hot windows and returns it.
func (Shared) Hot() []sharedlimit.Place {
	for range maxTries {
		b, cas, err := proxywasm.GetSharedData(hotKey)
		if err != nil || len(b) < ratelimit.PlaceKeyLen {
			return nil
		}
		if proxywasm.SetSharedData(hotKey, empty, cas) != nil {
			continue
		}
		list := make([]sharedlimit.Place, len(b)/ratelimit.PlaceKeyLen)
		for i := range list {
			copy(list[i][:], b[i*ratelimit.PlaceKeyLen:])
		}
		return list
	}
	return nil
}

// SetFleet stores the state of the fleet.
func (Shared) SetFleet(st sharedlimit.State) {
	overwrite(stateKey, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, st.Edges), uint64(st.Heard)))
}

// Fleet returns the state of the fleet; the zero State when nothing is known.
func (Shared) Fleet() sharedlimit.State {
	b, _, err := proxywasm.GetSharedData(stateKey)
	if err != nil || len(b) != 12 {
		return sharedlimit.State{}
	}
	return sharedlimit.State{Edges: binary.LittleEndian.Uint32(b), Heard: int64(binary.LittleEndian.Uint64(b[4:]))}
}

// SetShares stores what strict limits go by.
func (Shared) SetShares(s sharedlimit.Shares) { overwrite(shareKey, s.Append(nil)) }

// Shares returns what strict limits go by; the zero Shares when nothing is known.
func (Shared) Shares() sharedlimit.Shares {
	b, _, err := proxywasm.GetSharedData(shareKey)
	if err != nil {
		return sharedlimit.Shares{}
	}
	return sharedlimit.ParseShares(b)
}
