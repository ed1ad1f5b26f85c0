package config

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestBytesHaveUnits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		`5`: 5, `"5"`: -1, `"5 B"`: 5, `"512MiB"`: 512 << 20, `"500 GiB"`: 500 << 30, `"1.5 GB"`: 1_500_000_000, `"2 TiB"`: 2 << 40,
		`"1kB"`: 1000, `"1 KB"`: 1000, `1.5`: -1, `"GiB"`: -1, `"-1 GiB"`: -1, `"NaN GB"`: -1, `"1e30 GB"`: -1, `"5 XB"`: -1, `true`: -1, `{}`: -1,
		`"` + strings.Repeat("1", 50) + ` B"`: -1,
	} {
		var n Bytes
		if err := json.Unmarshal([]byte(text), &n); (err == nil) != (want >= 0) || err == nil && int64(n) != want {
			t.Errorf("%s: %d %v", text, n, err)
		}
	}
}

func TestMediaOfAPlan(t *testing.T) {
	t.Parallel()
	d := Document{Plans: []Plan{{Name: "free", Media: &Media{Streams: 3}}, {Name: "hd", Media: &Media{Streams: 7, Storage: 9}}, {Name: "pro"}, {Name: "bare"}}}
	for plan, want := range map[string]Media{
		"hd": {Streams: 7, Storage: 9}, "free": {Streams: 3}, "": {Streams: 3}, "bare": {Streams: 3}, "unknown": {Streams: 3},
		"pro": {Streams: 10, BitrateKbps: 20_000, File: 5 << 30, Storage: 500 << 30, Calls: new(200)},
	} {
		if got := d.MediaOf(plan); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v", plan, got)
		}
	}
	// A document of before says nothing, and none is there yet: as it was.
	for _, old := range []Document{{Plans: []Plan{{Name: "enterprise"}, {Name: "own"}}}, {}} {
		if got := old.MediaOf("enterprise"); got.Streams != 200 || got.Storage != 0 {
			t.Errorf("enterprise of before: %+v", got)
		}
		if got := old.MediaOf("own"); got.Streams != 1 || got.Storage != 5<<30 {
			t.Errorf("an own plan of before: %+v", got)
		}
	}
}

func TestMediaIsChecked(t *testing.T) {
	t.Parallel()
	for text, fault := range map[string]string{
		`{streams: 2, storage_bytes: 1 GiB, file_bytes: 1 GiB}`: "",
		`{streams: -1}`: "plans[0].media.streams",
		`{storage_bytes: 1 GiB, file_bytes: 2 GiB}`: "plans[0].media.file_bytes",
		`{storage_bytes: much}`:                     "plans[0].media.storage_bytes is not valid",
		`{stream: 1}`:                               "plans[0].media.stream",
	} {
		d, _, err := ParseYAML([]byte("plans: [{name: free, media: " + text + "}]\nproducts: [{name: a, upstreams: [{address: \"a.example:80\"}]}]\nroutes: [{name: r, path: /a, auth: [none], product: a}]\n"))
		if err == nil {
			err = d.Validate()
		}
		said := ""
		if err != nil {
			said = err.Error()
		}
		if fault == "" && strings.Contains(said, "media") || fault != "" && !strings.Contains(said, fault) {
			t.Errorf("%s: %s", text, said)
		}
	}
}

func TestCallsOutHaveABoundUnlessAPlanSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		calls *int
		want  int
	}{{nil, 100}, {new(0), -1}, {new(7), 7}} {
		if got := (Media{Calls: c.calls}).CallsOut(); got != c.want {
			t.Errorf("%v: %d, want %d", c.calls, got, c.want)
		}
	}
	for _, n := range []int{-1, maxCalls + 1} {
		var v validator
		v.media("plans[0].media", &Media{Calls: new(n)})
		if len(v.details) != 1 || v.details[0].Field != "plans[0].media.calls_per_day" {
			t.Errorf("%d: %+v", n, v.details)
		}
	}
}
