package wire_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"sluice.dev/sluice/media/live/moq/wire"
	"sluice.dev/sluice/platform/limits/growth"
)

// read is the message in raw, which must be whole.
func read(t *testing.T, raw string) wire.Message {
	t.Helper()
	m, err := wire.ReadMessage(bufio.NewReader(strings.NewReader(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// These bytes were sent by another implementation, aiomoqt 0.5.3.
func TestMessagesOfAnotherImplementation(t *testing.T) {
	t.Parallel()
	const path = "/moq/play_edcy22myaejyffzr0mgp"
	setup, err := wire.ParseSetup(read(t, "\x20\x00\x4d\x01\xc0\x00\x00\x00\xff\x00\x00\x0e\x04\x01\x1e"+path+"\x05\x0f127.0.0.1:43543\x02\x67\x10\x07\x0daiomoqt/0.5.3"))
	if want := (wire.Setup{Versions: []uint64{wire.Version}, Path: path, MaxRequestID: 10000}); err != nil || !reflect.DeepEqual(setup, want) {
		t.Errorf("%+v, %v", setup, err)
	}
	m := read(t, "\x03\x00\x29\x00\x01\x19play_edcy22myaejyffzr0mgp\x07catalog\x80\x01\x01\x02\x00")
	r, err := wire.ParseRequest(m.Body)
	if want := (wire.Request{Namespace: wire.Namespace{"play_edcy22myaejyffzr0mgp"}, Name: "catalog", Priority: 128, GroupOrder: 1, Forward: 1, Filter: wire.LargestObject}); err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("%+v, %v", r, err)
	}
}

// What is written is what is read.
func TestEveryMessageComesBack(t *testing.T) {
	t.Parallel()
	for _, r := range []wire.Request{
		{ID: 4, Namespace: wire.Namespace{"a", ""}, Name: "video", Priority: 1, GroupOrder: 2, Filter: wire.NextGroupStart, Forward: 1},
		{ID: 1 << 40, Filter: wire.AbsoluteStart, Start: wire.Location{Group: 7, Object: 9}},
		{ID: 6, Filter: wire.AbsoluteRange, Start: wire.Location{Group: 7}, EndGroup: 8},
	} {
		if got, err := wire.ParseRequest(again(t, r.Message()).Body); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v, %v, want %+v", got, err, r)
		}
	}
	for _, a := range []wire.Accepted{{ID: 2, Alias: 3, GroupOrder: 1}, {ID: 2, GroupOrder: 2, Exists: true, Largest: wire.Location{Group: 5, Object: 6}}} {
		if got, err := wire.ParseAccepted(again(t, a.Message()).Body); err != nil || got != a {
			t.Errorf("%+v, %v, want %+v", got, err, a)
		}
	}
	refusal := wire.Refusal{ID: 2, Code: wire.RequestNoTrack, Reason: "none"}
	if got, err := wire.ParseRefusal(again(t, refusal.Message(wire.SubscribeError)).Body); err != nil || got != refusal {
		t.Errorf("%+v, %v", got, err)
	}
	for kind, s := range map[wire.Type]wire.Setup{
		wire.ClientSetup: {Versions: []uint64{1, wire.Version}, Path: "/moq/x", MaxRequestID: 9}, wire.ServerSetup: {Versions: []uint64{wire.Version}},
	} {
		if got, err := wire.ParseSetup(again(t, s.Message(kind))); err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	a := wire.Announcement{ID: 3, Namespace: wire.Namespace{"play_1"}}
	if got, err := wire.ParseAnnouncement(again(t, a.Message(wire.PublishNamespace)).Body); err != nil || !reflect.DeepEqual(got, a) {
		t.Errorf("%+v, %v", got, err)
	}
}

// again is m as the peer reads it.
func again(t *testing.T, m wire.Message) wire.Message {
	t.Helper()
	got := read(t, string(m.Append(nil)))
	if got.Type != m.Type {
		t.Errorf("type %#x, want %#x", got.Type, m.Type)
	}
	return got
}

func TestMessagesThatAreRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 4097)
	good := wire.Request{Namespace: wire.Namespace{"a"}, Name: "b", Forward: 1, Filter: wire.LargestObject}
	with := func(change func(*wire.Request)) []byte {
		r := good
		change(&r)
		return r.Message().Body
	}
	for name, body := range map[string][]byte{
		"none": nil, "cut": good.Message().Body[:5], "more": append(good.Message().Body, 1),
		"a long name":   with(func(r *wire.Request) { r.Name = long }),
		"33 fields":     with(func(r *wire.Request) { r.Namespace = make(wire.Namespace, 33) }),
		"long fields":   with(func(r *wire.Request) { r.Namespace = wire.Namespace{long[:3000], long[:3000]} }),
		"group order":   with(func(r *wire.Request) { r.GroupOrder = 3 }),
		"forward":       with(func(r *wire.Request) { r.Forward = 2 }),
		"filter":        with(func(r *wire.Request) { r.Filter = 5 }),
		"a huge tuple":  {0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"a huge length": {0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	} {
		if _, err := wire.ParseRequest(body); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := wire.ReadMessage(bufio.NewReader(bytes.NewReader(wire.Message{Type: wire.GoAway, Body: make([]byte, wire.MaxMessage+1)}.Append(nil)))); !errors.Is(err, wire.ErrMalformed) {
		t.Error(err)
	}
}

func TestObjectsComeBack(t *testing.T) {
	t.Parallel()
	raw := wire.AppendSubgroup(nil, wire.Subgroup{Alias: 7, Group: 1 << 30, Priority: 9})
	large := bytes.Repeat([]byte("x"), 300_000)
	for _, o := range [][]byte{[]byte("one"), {}, large} {
		raw = wire.AppendObject(raw, o)
	}
	in := bufio.NewReader(bytes.NewReader(raw))
	s, err := wire.ReadSubgroup(in)
	if err != nil || s.Alias != 7 || s.Group != 1<<30 || s.Priority != 9 {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, want := range [][]byte{[]byte("one"), nil, large} {
		if got, err := s.ReadObject(in); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes, %v, want %d", len(got), err, len(want))
		}
	}
	if _, err := s.ReadObject(in); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	// With a subgroup's id and extensions, as others send them.
	in = bufio.NewReader(strings.NewReader("\x15\x02\x03\x04\x80\x00\x02ab\x03abc" + "\x00\x00\x05ab"))
	if s, err = wire.ReadSubgroup(in); err != nil || s.Alias != 2 || s.Group != 3 || s.Priority != 128 {
		t.Fatalf("%+v, %v", s, err)
	}
	if got, err := s.ReadObject(in); err != nil || string(got) != "abc" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := s.ReadObject(in); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an object that is cut: %v", err)
	}
	for name, raw := range map[string]string{"a datagram": "\x00\x01\x01", "a fetch": "\x05\x01", "a third mode": "\x16\x01\x01\x01"} {
		if _, err := wire.ReadSubgroup(bufio.NewReader(strings.NewReader(raw))); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.ReadObject(bufio.NewReader(strings.NewReader("\x00\x00\xbf\xff\xff\xff"))); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("an object of a gigabyte: %v", err)
	}
}

// Whatever comes, it costs what its bytes cost.
func FuzzControl(f *testing.F) {
	f.Add(wire.Request{Namespace: wire.Namespace{"a"}, Name: "b", Filter: wire.AbsoluteRange}.Message().Append(nil))
	f.Add(wire.Setup{Versions: []uint64{wire.Version}, Path: "/moq/x"}.Message(wire.ClientSetup).Append(nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		growth.Linear(t, len(raw), 64, wire.MaxMessage+16<<10, func() { _ = control(raw) })
	})
}

// control reads one message by every parser.
func control(raw []byte) error {
	m, err := wire.ReadMessage(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil {
		return err
	}
	_, a := wire.ParseRequest(m.Body)
	_, b := wire.ParseAccepted(m.Body)
	_, c := wire.ParseRefusal(m.Body)
	_, d := wire.ParseSetup(m)
	_, e := wire.ParseAnnouncement(m.Body)
	_, g := wire.ParseNumber(m.Body)
	return errors.Join(a, b, c, d, e, g)
}

// Memory grows with what has come, not with what a length promises.
func FuzzObjects(f *testing.F) {
	f.Add(wire.AppendObject(wire.AppendSubgroup(nil, wire.Subgroup{Alias: 1}), []byte("x")))
	f.Add([]byte("\x10\x00\x00\x00\x00\x9f\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		growth.Linear(t, len(raw), 16, 160<<10, func() {
			in := bufio.NewReader(bytes.NewReader(raw))
			s, err := wire.ReadSubgroup(in)
			for err == nil {
				_, err = s.ReadObject(in)
			}
		})
	})
}
