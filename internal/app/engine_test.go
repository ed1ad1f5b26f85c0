package app

import (
	"strings"
	"testing"
	"time"
)

// environment has variables, and the table's values for the others.
func environment(set map[string]string) Environment {
	return Environment{Lookup: func(name string) (string, bool) { v, ok := set[name]; return v, ok }}
}

func TestWhereTheEngineIs(t *testing.T) {
	t.Parallel()
	alone := environment(nil)
	if got := alone.engineAddress("SLUICE_HLS_LISTEN") + " " + alone.public("SLUICE_RTMP_ADDR"); got != "127.0.0.1:18004 127.0.0.1:1935" {
		t.Error(got)
	}
	set := map[string]string{"SLUICE_PUBLIC_URL": "https://api.example.com", "SLUICE_HLS_LISTEN": "0.0.0.0:18004", "SLUICE_RTMP_ADDR": "0.0.0.0:1935", "SLUICE_ENGINE_HOST": "engine"}
	apart := environment(set)
	if got := apart.engineAddress("SLUICE_HLS_LISTEN") + " " + apart.public("SLUICE_RTMP_ADDR"); got != "engine:18004 api.example.com:1935" {
		t.Error(got)
	}
	for host, want := range map[string]string{"live.example.com": "live.example.com:1935", "192.0.2.1": "192.0.2.1:1935", "2001:db8::1": "[2001:db8::1]:1935"} {
		set["SLUICE_INGEST_HOST"] = host
		if _, err := apart.ingestHost(); err != nil || apart.public("SLUICE_RTMP_ADDR") != want {
			t.Errorf("%s: %s, %v", host, apart.public("SLUICE_RTMP_ADDR"), err)
		}
	}
	for _, host := range []string{"live.example.com\"]", "https://live.example.com", "a b"} {
		set["SLUICE_INGEST_HOST"] = host
		if _, err := apart.ingestHost(); err == nil || !strings.Contains(err.Error(), "SLUICE_INGEST_HOST") {
			t.Errorf("%q: %v", host, err)
		}
	}
}

func TestPartsOfSegments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": 200 * time.Millisecond, "off": 0, "500ms": 500 * time.Millisecond, "200ms": 200 * time.Millisecond, "1s": time.Second, "50ms": -1, "2s": -1, "0": -1, "yes": -1} {
		got, err := Environment{Lookup: func(string) (string, bool) { return text, true }}.mediaParts()
		if want < 0 && (err == nil || !strings.Contains(err.Error(), "SLUICE_MEDIA_PARTS")) || want >= 0 && (err != nil || got != want) {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}
