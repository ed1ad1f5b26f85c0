package config

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Media is how much of the media product an account may use. What is absent has no bound, but
// for calls, which cost the operator money.
type Media struct {
	Streams     int   `json:"streams,omitempty"`       // live or paused at a time
	BitrateKbps int   `json:"bitrate_kbps,omitempty"`  // of one stream, in kbit/s
	Storage     Bytes `json:"storage_bytes,omitempty"` // of all that it stores
	File        Bytes `json:"file_bytes,omitempty"`    // of one file that is uploaded or fetched
	Calls       *int  `json:"calls_per_day,omitempty"` // telephone calls out in a day (UTC); absent: 100
}

// usualCalls are those that a plan has which does not say.
const usualCalls = 100

// CallsOut is how many telephone calls may go out in a day; negative: none.
func (m Media) CallsOut() int {
	switch {
	case m.Calls == nil:
		return usualCalls
	case *m.Calls == 0:
		return -1
	}
	return *m.Calls
}

// Bytes is a number of bytes. A document may write it with a unit: "500 GiB", "1.5 GB".
type Bytes int64

// units are what a number of bytes may end with, longer ones first.
var units = []struct {
	name string
	size float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"PiB", 1 << 50},
	{"KB", 1e3}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}, {"B", 1},
}

var errBytes = errors.New(`is not a number of bytes: write 536870912, or "512 MiB"`)

// UnmarshalJSON reads a number, or a text with a unit. It takes time and memory linear in
// b, of which it reads 40 bytes at most.
func (n *Bytes) UnmarshalJSON(b []byte) error {
	if len(b) > 40 {
		return errBytes
	}
	if b[0] != '"' {
		var whole int64
		if json.Unmarshal(b, &whole) != nil {
			return errBytes
		}
		*n = Bytes(whole)
		return nil
	}
	var text string
	if json.Unmarshal(b, &text) != nil {
		return errBytes
	}
	for _, u := range units {
		figure, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(figure), 64)
		if size := f * u.size; err == nil && size >= 0 && size <= math.MaxInt64/2 {
			*n = Bytes(size)
			return nil
		}
		break
	}
	return errBytes
}

// builtinPlans are those of the document that is built in.
var builtinPlans = sync.OnceValue(func() []Plan {
	d, _ := Default() // tests hold that it is right
	return d.Plans
})

// MediaOf is how much of the media product the accounts of a plan may use. A plan that does
// not say has what the plan of its name that is built in has, else what free has, in the
// document or built in; so have paying agents, who are of the plan "".
func (d Document) MediaOf(plan string) Media {
	for _, name := range []string{plan, "free"} {
		for _, list := range [][]Plan{d.Plans, builtinPlans()} {
			i := slices.IndexFunc(list, func(p Plan) bool { return p.Name == name && p.Media != nil })
			if i >= 0 {
				return *list[i].Media
			}
		}
	}
	return Media{}
}

// maxCalls bounds the calls of a day: a number that no trunk would make.
const maxCalls = 1_000_000

// media checks how much of the media product a plan allows.
func (v *validator) media(f string, m *Media) {
	if m == nil {
		return
	}
	for _, n := range []struct {
		name  string
		value int64
	}{{"streams", int64(m.Streams)}, {"bitrate_kbps", int64(m.BitrateKbps)}, {"storage_bytes", int64(m.Storage)}, {"file_bytes", int64(m.File)}} {
		if n.value < 0 {
			v.add(f+"."+n.name, "is negative", "a positive integer, or nothing for no bound")
		}
	}
	if m.Calls != nil && (*m.Calls < 0 || *m.Calls > maxCalls) {
		v.add(f+".calls_per_day", "is out of range", "0 (none) to "+strconv.Itoa(maxCalls))
	}
	if m.Storage > 0 && m.File > m.Storage {
		v.add(f+".file_bytes", "is more than storage_bytes", "at most what the account may store")
	}
}
