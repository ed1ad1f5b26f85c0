package config

import (
	"strings"
	"testing"
)

func TestEngines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ yaml, field, says string }{
		"none":            {`{}`, "", ""},
		"an address":      {`{voice: {url: "http://10.0.0.7:8000/v1", key_from: ENGINE_ACME, model: tts-1, timeout: 30s, max_bytes: 1000, concurrency: 4}}`, "", ""},
		"off":             {`{vision: {use: off}}`, "", ""},
		"unknown use":     {`{voice: {use: remote}}`, "engines.voice.use", "auto, builtin, url, off"},
		"url is missing":  {`{transcribe: {use: url}}`, "engines.transcribe.url", "https://host/v1"},
		"model alone":     {`{transcribe: {model: whisper-1}}`, "engines.transcribe.url", "neither of them"},
		"a password":      {`{voice: {url: "https://me:secret@host/v1"}}`, "engines.voice.url", "key_from"},
		"another secret":  {`{voice: {url: "https://host/v1", key_from: SLUICE_SECRETS_KEY}}`, "engines.voice.key_from", "ENGINE_"},
		"too long":        {`{voice: {timeout: 2h}}`, "engines.voice.timeout", "1h"},
		"not a time":      {`{voice: {timeout: soon}}`, "engines.voice.timeout", "1500ms"},
		"too large":       {`{voice: {max_bytes: 5000000000}}`, "engines.voice.max_bytes", "4294967296"},
		"too many":        {`{voice: {concurrency: 2000}}`, "engines.voice.concurrency", "1024"},
		"a model's lines": {"{voice: {url: \"https://h/v1\", model: \"a\\nb\"}}", "engines.voice.model", "bytes of text"},
	} {
		d, _, err := ParseYAML([]byte("include: [builtin]\nengines: " + c.yaml + "\n"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		d, faults := d.Expand("")
		faults = append(faults, d.Faults()...)
		if c.field == "" {
			if len(faults) > 0 {
				t.Errorf("%s: %v", name, faults)
			}
			continue
		}
		if len(faults) != 1 || faults[0].Field != c.field || !strings.Contains(faults[0].Expected, c.says) {
			t.Errorf("%s: %v", name, faults)
		}
		usable, _, ok := d.Usable()
		if e := *usable.Engines.byName()[strings.Split(c.field, ".")[1]]; !ok || e.Use != EngineOff {
			t.Errorf("%s: what is left is %+v", name, e)
		}
	}
}

func TestAChangedEngineIsShown(t *testing.T) {
	t.Parallel()
	a := Document{Engines: &Engines{Voice: &Engine{Use: EngineAuto}}}
	b := Document{Engines: &Engines{Voice: &Engine{Use: EngineOff}}}
	changes := Diff(a, b)
	if len(changes) != 1 || changes[0].Path != "engines.voice" {
		t.Errorf("%+v", changes)
	}
	if left := Diff(a, a); len(left) != 0 {
		t.Errorf("%+v", left)
	}
}
