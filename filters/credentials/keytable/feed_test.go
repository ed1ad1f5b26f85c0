package keytable

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

type memory map[uint32][]byte

func (m memory) Bucket(n uint32) []byte { return slices.Clone(m[n]) }
func (m memory) SetBucket(n uint32, b []byte) {
	m[n] = slices.Clone(b)
}

// server is a feed in a few lines: the newest record of every tag, and a log.
type server struct {
	epoch uint64
	now   map[Tag]Record
	log   []Record
}

func (s *server) change(r Record) {
	s.log = append(s.log, r)
	if s.now[r.Tag] = r; r.Kind == KindNone {
		delete(s.now, r.Tag)
	}
}

// answer serves st as the control plane does, with pages of three records.
func (s *server) answer(st State) Page {
	if st.Epoch == s.epoch && !st.Loading {
		p := Page{Epoch: s.epoch, Position: min(st.Position+3, uint64(len(s.log)))}
		for _, r := range s.log[st.Position:p.Position] {
			p.Records = r.Append(p.Records)
		}
		p.Last = p.Position == uint64(len(s.log))
		return p
	}
	p := Page{Snapshot: true, Epoch: s.epoch, Position: st.Position, Hi: Buckets - 1, Last: true}
	if st.Epoch != s.epoch {
		p.Position, st.Cursor = uint64(len(s.log)), Tag{}
	} else {
		p.Lo = st.Cursor.Bucket() + 1
	}
	tags := slices.SortedFunc(maps.Keys(s.now), func(a, b Tag) int { return bytes.Compare(a[:], b[:]) })
	for _, tag := range tags {
		if tag.Bucket() < p.Lo {
			continue
		}
		if n := len(p.Records) / RecordSize; n >= 3 && tag.Bucket() != p.Cursor.Bucket() {
			p.Last, p.Hi = false, p.Cursor.Bucket()
			break
		}
		p.Cursor = tag
		p.Records = s.now[tag].Append(p.Records)
	}
	return p
}

func randomRecord(rng *rand.Rand) Record {
	n := rng.Uint64N(40)
	r := Record{Tag: TagOfKey(sha256.Sum256(binary.LittleEndian.AppendUint64(nil, n))), Kind: KindKey, ID: n, Limit: rng.Uint32()}
	if n%2 == 0 { // so that some share a bucket
		r.Tag[0], r.Tag[1], r.Tag[2] = 7, 7, 0xc0|r.Tag[2]&0x3f
	}
	if rng.IntN(3) == 0 {
		return Record{Tag: r.Tag}
	}
	return r
}

// An edge that reads pages while records change, starts again at any point and
// meets new epochs ends with what the server has, and nothing else.
func TestEdgeEndsWithWhatTheServerHas(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	for range 12 {
		s := &server{epoch: 1, now: map[Tag]Record{}}
		m, st := memory{}, State{}
		for range 300 {
			switch rng.IntN(20) {
			case 0: // another history: a database restored from a backup
				s.epoch++
				s.log = nil
			case 1: // a crash after the page is in and before the state is
				if p := s.answer(st); p.Epoch == st.Epoch || !st.Ready {
					st.Apply(p, m)
				}
			case 2, 3, 4, 5, 6:
				st = st.Apply(s.answer(st), m)
			default:
				s.change(randomRecord(rng))
			}
		}
		for p := s.answer(st); ; p = s.answer(st) {
			if st = st.Apply(p, m); p.Last && !p.Snapshot {
				break
			}
		}
		compare(t, s, m, st)
	}
}

func compare(t *testing.T, s *server, m memory, st State) {
	t.Helper()
	if !st.Ready || st.Loading {
		t.Fatalf("%+v after the last page", st)
	}
	held := 0
	for n, b := range m {
		held += len(b) / RecordSize
		for ; len(b) > 0; b = b[RecordSize:] {
			if r, _ := Decode(b); r != s.now[r.Tag] || r.Tag.Bucket() != n {
				t.Fatalf("bucket %d holds %+v, the server has %+v", n, r, s.now[r.Tag])
			}
		}
	}
	if held != len(s.now) {
		t.Fatalf("%d records, the server has %d", held, len(s.now))
	}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	if q := (State{Epoch: 3, Position: 9, Ready: true}).Query(25); q != "epoch=3&position=9&wait=25" {
		t.Error(q)
	}
	if q := (State{Epoch: 3, Position: 9, Cursor: Tag{0xab}, Loading: true}).Query(25); q != "epoch=3&position=9&cursor=ab000000000000000000000000000000" {
		t.Error(q)
	}
}
