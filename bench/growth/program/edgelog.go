package main

import (
	"io"
	"time"

	"sluice.dev/sluice/envoy/requestlog"
	"sluice.dev/sluice/filters/recording"
)

// edgeLines are the lines that an edge's agent reads of its Envoy.
func edgeLines() parser {
	return parser{name: "envoy/requestlog: Writer", read: quietly(func(in []byte) {
		recorder := requestlog.New(requestlog.Config{Edge: "e", Now: func() time.Time { return now }})
		_, _ = (&requestlog.Writer{Print: io.Discard, Record: recorder}).Write(append([]byte(`{"#":"aa",`), in...))
	}), forms: in(`"caller":%s,"route":"r","status":500}`, `"path":%s,"status":200}`, `"request_id":"1","time":"2026-01-02T03:04:05Z","host":%s}`)}
}

// recordedBlocks are what an edge sends of all requests.
func recordedBlocks() parser {
	return parser{name: "filters/recording: Parse", read: quietly(func(in []byte) {
		recording.Parse(append([]byte("\x01\x00\x00\x00"), in...))
	}), forms: in("\x01%s", "\xff\x0f%s", "%s\x00")}
}
