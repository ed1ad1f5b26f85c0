package main

import (
	"bufio"
	"bytes"
	"encoding/binary"

	"sluice.dev/sluice/media/live/moq/wire"
)

// moqControl reads control messages, one after another.
func moqControl(in []byte) error {
	r := bufio.NewReader(bytes.NewReader(in))
	for {
		m, err := wire.ReadMessage(r)
		if err != nil {
			return nil
		}
		_, _ = wire.ParseRequest(m.Body)
		_, _ = wire.ParseSetup(m)
		_, _ = wire.ParseAnnouncement(m.Body)
		_, _ = wire.ParseAccepted(m.Body)
		_, _ = wire.ParseRefusal(m.Body)
	}
}

// moqObjects reads a stream of objects.
func moqObjects(in []byte) error {
	r := bufio.NewReader(bytes.NewReader(in))
	s, err := wire.ReadSubgroup(r)
	for err == nil {
		_, err = s.ReadObject(r)
	}
	return nil
}

// many repeats b to n bytes, behind head.
func many(name string, head, b []byte) shape {
	return shape{name, func(n int) []byte { return append(bytes.Clone(head), bytes.Repeat(b, max(1, n/len(b)))...) }}
}

var (
	moqMessages = []shape{
		many("subscriptions", nil, wire.Request{Namespace: wire.Namespace{"a", "b"}, Name: "video", Forward: 1, Filter: wire.LargestObject}.Message().Append(nil)),
		many("setups", nil, wire.Setup{Versions: []uint64{wire.Version}, Path: "/moq/play"}.Message(wire.ClientSetup).Append(nil)),
		many("namespaces", nil, wire.Announcement{Namespace: make(wire.Namespace, 32)}.Message(wire.PublishNamespace).Append(nil)),
		many("empty messages", nil, wire.Message{Type: wire.GoAway}.Append(nil)),
	}
	moqStreams = []shape{
		many("small objects", wire.AppendSubgroup(nil, wire.Subgroup{}), wire.AppendObject(nil, []byte("x"))),
		many("empty objects", wire.AppendSubgroup(nil, wire.Subgroup{}), wire.AppendObject(nil, nil)),
		many("extensions", []byte("\x11\x00\x00\x00"), []byte("\x00\x04abcd\x01x")),
		{"one object", func(n int) []byte {
			return wire.AppendObject(wire.AppendSubgroup(nil, wire.Subgroup{}), make([]byte, n))
		}},
		{"one that is cut", func(n int) []byte {
			return wire.AppendObject(wire.AppendSubgroup(nil, wire.Subgroup{}), make([]byte, 4*n))[:n]
		}},
	}
	moqChunks = []shape{
		many("empty fragments", nil, boxOf("moof", nil)),
		many("tracks", nil, boxOf("moof", boxOf("traf", boxOf("tfdt", make([]byte, 8))))),
		many("runs", nil, boxOf("moof", boxOf("traf", boxOf("trun", []byte("\x00\x00\x00\x00\x00\x00\x00\x01"))))),
		many("data", nil, boxOf("mdat", nil)),
		{"one run", func(n int) []byte {
			return boxOf("moof", boxOf("traf", boxOf("trun", append([]byte{0, 0, 1, 0, 0, 0, byte(n >> 10), 0}, make([]byte, n)...))))
		}},
	}
)

// boxOf is a box of ISO/IEC 14496-12.
func boxOf(kind string, body []byte) []byte {
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(8+len(body))), kind...), body...)
}
