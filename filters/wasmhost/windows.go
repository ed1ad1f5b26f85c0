package wasmhost

import (
	"encoding/binary"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/fleet"
	"sluice.dev/sluice/filters/ratelimit"
)

// maxTries bounds how often one of several workers competes for one value.
const maxTries = 16

// TakeAmong counts one request in the window of id; see
// ratelimit.Window.TakeAmong. A window that becomes hot is put on the list that
// Hot returns. When other workers win each time it writes over their count: one
// request too few is counted, where waiting on would hold up this worker.
func (s Shared) TakeAmong(k ratelimit.Kind, id ratelimit.ID, l ratelimit.Limit, f ratelimit.Fleet, now int64) ratelimit.Result {
	var r ratelimit.Result
	for try := range maxTries {
		key, w, cas := window(k, id, now)
		r = w.TakeAmong(l, f, now)
		if !r.OK {
			return r // nothing changed that matters
		}
		hot := w.Hot(l, f, now)
		if try == maxTries-1 {
			cas = 0
		}
		if set(key, w, cas) != nil {
			continue
		}
		if hot {
			addHot(key)
		}
		break
	}
	return r
}

// GiveBack takes back what has just been counted in the window of id.
func (Shared) GiveBack(k ratelimit.Kind, id ratelimit.ID, now int64) {
	for range maxTries {
		key, w, cas := window(k, id, now)
		if w.Total() == 0 { // it lost its place meanwhile
			return
		}
		w.GiveBack()
		if set(key, w, cas) == nil {
			return
		}
	}
}

// windowKey is the key of the window that is asked for or set; one for the VM,
// since it would go to the heap.
var windowKey fleet.Place

// set replaces the window in a place, if it is as it was at cas; 0: in any case.
func set(p fleet.Place, w ratelimit.Window, cas uint32) error {
	windowKey = p
	return proxywasm.SetSharedData(text(windowKey[:]), w, cas)
}

// window finds the window of id, or the best place for a new one. The window
// stays until the next call.
func window(k ratelimit.Kind, id ratelimit.ID, now int64) (key fleet.Place, w ratelimit.Window, cas uint32) {
	least := ^uint32(0)
	for n := range ratelimit.Probes {
		place := ratelimit.Place(k, id, n)
		windowKey = place
		b, c, err := sharedData(text(windowKey[:]), windowRoom[:])
		got := ratelimit.Window(b)
		if err == nil && got.Is(id) {
			return place, got, c
		}
		if err != nil || got.Free(now) {
			return place, ratelimit.New(id), c
		}
		if got.Total() < least {
			key, cas, least = place, c, got.Total()
		}
	}
	return key, ratelimit.New(id), cas
}

// The hot windows and how it stands with the fleet are in shared data too: the
// workers and keysync tell each other by them.
const (
	hotKey   = "hot"
	stateKey = "fleet"
)

// addHot puts a place on the list of hot ones. A list that is full is left as
// it is: the window is found hot again in the next second.
func addHot(p fleet.Place) {
	for range maxTries {
		b, cas, _ := proxywasm.GetSharedData(hotKey)
		if len(b) >= fleet.MaxEntries*len(p) {
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
func (Shared) Hot() []fleet.Place {
	for range maxTries {
		b, cas, err := proxywasm.GetSharedData(hotKey)
		if err != nil || len(b) < ratelimit.PlaceKeyLen {
			return nil
		}
		if proxywasm.SetSharedData(hotKey, empty, cas) != nil {
			continue
		}
		list := make([]fleet.Place, len(b)/ratelimit.PlaceKeyLen)
		for i := range list {
			copy(list[i][:], b[i*ratelimit.PlaceKeyLen:])
		}
		return list
	}
	return nil
}

// Window returns the window in a place; nil: none.
func (Shared) Window(p fleet.Place) ratelimit.Window {
	b, _, err := proxywasm.GetSharedData(text(p[:]))
	if w := ratelimit.Window(b); err == nil && w.Whole() {
		return w
	}
	return nil
}

// SetOthers puts what other edges have counted behind the window of id.
func (Shared) SetOthers(id ratelimit.ID, o ratelimit.Others) {
	for range maxTries {
		key, w, cas := window(ratelimit.KindOf(id), id, o.Newest)
		if set(key, w.WithOthers(o), cas) == nil {
			return
		}
	}
}

// SetFleet says how it stands with the fleet.
func (Shared) SetFleet(st fleet.State) {
	overwrite(stateKey, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, st.Edges), uint64(st.Heard)))
}

// Fleet tells how it stands with the fleet; the zero State when nothing is known.
func (Shared) Fleet() fleet.State {
	b, _, err := proxywasm.GetSharedData(stateKey)
	if err != nil || len(b) != 12 {
		return fleet.State{}
	}
	return fleet.State{Edges: binary.LittleEndian.Uint32(b), Heard: int64(binary.LittleEndian.Uint64(b[4:]))}
}
