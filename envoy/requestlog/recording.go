package requestlog

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/recording"
)

// Of every request that reached a route a short record is kept besides, on which
// another configuration can be tried: of all of them up to recordedASecond, of a sample
// beyond that, whose size is known.
const (
	recordedASecond = 200
	// mostASecond is how many are kept of a second in which the sample was too large.
	mostASecond = 2 * recordedASecond
	blockEvery  = 5 * time.Second
	maxPaths    = 256 << 10         // bytes of the paths in a block
	maxBlocks   = edgeapi.MaxBlocks // that wait while the control plane is away: a minute
)

// recorder keeps records until they are sent. Whoever calls it holds the lock.
type recorder struct {
	block   recording.Block
	seen    [2]float64
	began   time.Time // of block
	second  int64
	taken   int // in second
	bytes   int // of the paths in block
	blocks  [][]byte
	lost    uint64 // requests of blocks that made room
	sampled Sample // that Envoy was last told
}

// add records the request of a line.
func (r *recorder) add(m mark, rest []byte, bad bool, now time.Time) {
	if !bytes.Contains(rest, []byte(`,"route":"`)) { // it was refused before it reached one
		return
	}
	kind := 0
	if bad {
		kind = 1
	}
	r.seen[kind] += r.weight(m, bad)
	if second := now.Unix(); second != r.second {
		r.second, r.taken = second, 0
	}
	if r.taken >= mostASecond || len(r.block.Requests) >= recording.MaxRequests || r.bytes > maxPaths {
		return
	}
	one, ok := record(rest, m.record == edgeapi.MarkAll[0])
	if !ok {
		return
	}
	r.taken++
	r.bytes += len(one.Path)
	if len(r.block.Requests) == 0 {
		r.began = now
	}
	r.block.Requests = append(r.block.Requests, one)
}

// weight is how many requests a line stands for: Envoy writes all lines of what is
// printed, and of the rest a sample.
func (r *recorder) weight(m mark, bad bool) float64 {
	switch {
	case m.print == edgeapi.MarkAll[0], bad && m.print == edgeapi.MarkSome[0]:
		return 1
	case bad:
		return edgeapi.WholeSample / float64(max(1, r.sampled.Failure))
	}
	return edgeapi.WholeSample / float64(max(1, r.sampled.Success))
}

// close ends a block that is old enough, or any if all is true, and returns those that
// are to be sent.
func (r *recorder) close(now time.Time, all bool) [][]byte {
	if len(r.block.Requests) > 0 && (all || now.Sub(r.began) >= blockEvery) {
		r.block.Seen = [2]uint64{uint64(r.seen[0] + 0.5), uint64(r.seen[1] + 0.5)}
		r.block.Lost, r.lost = r.lost, 0
		r.blocks = append(r.blocks, r.block.Append(nil))
		r.block, r.seen, r.bytes = recording.Block{Requests: r.block.Requests[:0]}, [2]float64{}, 0
	}
	list := r.blocks
	r.blocks = nil
	return list
}

// putBack keeps blocks that nobody took; the oldest make room.
func (r *recorder) putBack(list [][]byte) {
	r.blocks = append(list, r.blocks...)
	for len(r.blocks) > maxBlocks {
		if b, ok := recording.Parse(r.blocks[0]); ok {
			r.lost += b.Seen[0] + b.Seen[1] + b.Lost
		}
		r.blocks = r.blocks[1:]
	}
}

// record reads what is recorded from a line; ok is false for one of a request that
// reached no route. It takes time linear in the line, and memory for the texts that it
// keeps.
func record(rest []byte, path bool) (r recording.Request, ok bool) {
	if len(rest) > maxLineLen {
		return r, false
	}
	if r.Route = textOf(rest, `,"route":"`); r.Route == "" {
		return r, false
	}
	at, err := time.Parse(time.RFC3339Nano, textOf(rest, `,"time":"`))
	if err != nil {
		return r, false
	}
	r.Time = at.UnixMilli()
	r.Listener, r.Method, r.Host = textOf(rest, `,"listener":"`), textOf(rest, `,"method":"`), hostOf(textOf(rest, `,"host":"`))
	r.Client, r.Status = textOf(rest, `,"client":"`), uint16(numberOf(rest, `,"status":`))
	r.In, r.Out = numberOf(rest, `"bytes_in":`), numberOf(rest, `,"bytes_out":`)
	if path {
		r.Path = textOf(rest, `,"path":"`)
	}
	if id, err := hex.DecodeString(strings.ReplaceAll(textOf(rest, `,"request_id":"`), "-", "")); err == nil && len(id) == 16 {
		copy(r.ID[:], id)
	}
	recordCaller(&r, textOf(rest, `,"caller":"`))
	for _, t := range []*string{&r.Route, &r.Listener, &r.Method, &r.Host, &r.Client, &r.Account, &r.Credential, &r.Code} {
		*t = cut(*t, 255)
	}
	r.Path, r.Scopes = cut(r.Path, recording.MaxText), cut(r.Scopes, recording.MaxText)
	return r, true
}

// recordCaller reads an identity, or what the edge filter has left in its place.
func recordCaller(r *recording.Request, caller string) {
	for part := range strings.SplitSeq(caller, ";") {
		switch name, value, _ := strings.Cut(part, "="); name {
		case "a":
			r.Account = value
		case "k", "n": // n of one that the filter had no reason to look at
			r.Credential = value
		case "s":
			r.Scopes = value
		case "c":
			r.Code = value
		}
	}
}

// textOf is the text after a name that is unique in a line, as JSON has it.
func textOf(line []byte, name string) string {
	_, after, ok := bytes.Cut(line, []byte(name))
	if !ok {
		return ""
	}
	for i := 0; i < len(after); i++ {
		switch after[i] {
		case '"':
			return string(after[:i])
		case '\\':
			return escapedText(after, i)
		}
	}
	return ""
}

// escapedText is textOf for one that has an escape at i.
func escapedText(after []byte, i int) (text string) {
	for ; i < len(after) && after[i] != '"'; i++ {
		if after[i] == '\\' {
			i++
		}
	}
	if i >= len(after) || json.Unmarshal(append(append([]byte{'"'}, after[:i]...), '"'), &text) != nil {
		return ""
	}
	return text
}

// numberOf is the number after a name that is unique in a line.
func numberOf(line []byte, name string) uint64 {
	n, _ := strconv.ParseUint(string(valueOf(line, name, ",}")), 10, 63)
	return n
}
