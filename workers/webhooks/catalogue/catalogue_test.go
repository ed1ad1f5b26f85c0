package catalogue

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sluice.dev/sluice/filters/decision"
)

// The events of contract 7.8 to contract 7.12.
var specNames = []string{
	"stream.started", "stream.ended", "recording.completed", "recording.failed", "viewer.threshold_reached",
	"billing.usage_warning", "stream.error", "stream.deleted", "recording.ready", "vod.ready", "captions.generated", "test.webhook",
}

func TestEveryEventOfTheSpecIsThere(t *testing.T) {
	t.Parallel()
	for _, name := range specNames {
		if _, ok := Lookup(name); !ok {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestNamesAreUniqueAndOfOneForm(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, e := range All() {
		if seen[e.Name] || strings.ToLower(e.Name) != e.Name || strings.Count(e.Name, ".") != 1 {
			t.Errorf("%s: twice, or not group.name in lower case", e.Name)
		}
		seen[e.Name] = true
	}
}

func TestEachExampleFitsItsSchema(t *testing.T) {
	t.Parallel()
	for _, e := range All() {
		example, err := jsonschema.UnmarshalJSON(bytes.NewReader(e.Example))
		if err != nil {
			t.Fatal(err)
		}
		if err := compile(e.Name, e.Schema).Validate(example); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
		var body struct{ Data map[string]any }
		if err := json.Unmarshal(e.Example, &body); err != nil {
			t.Fatal(err)
		}
		if bad := e.Check(body.Data); bad != nil {
			t.Errorf("%s: %v", e.Name, bad)
		}
	}
}

func TestCheckListsEveryBadField(t *testing.T) {
	t.Parallel()
	e, _ := Lookup("viewer.threshold_reached")
	got := e.Check(map[string]any{"threshold": "many", "current_viewers": -1.0})
	slices.SortFunc(got, func(a, b decision.Detail) int { return strings.Compare(a.Field, b.Field) })
	want := []decision.Detail{
		{Field: "data.current_viewers", Issue: "minimum: got -1, want 0"},
		{Field: "data.threshold", Issue: "got string, want integer"},
		{Field: "data.threshold_type", Issue: "is missing"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestKnown(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]bool{
		"stream.started": true, "stream.*": true, "*": true, "webhook.*": true,
		"": false, "stream": false, "stream.": false, "stream.*.x": false, "stream*": false, ".*": false,
		"str*": false, "nothing.*": false, "stream.starte": false, "**": false, "STREAM.STARTED": false,
	} {
		if got := Known(pattern); got != want {
			t.Errorf("%q: %v", pattern, got)
		}
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	if d := cmp.Diff([]string{"a.b.c", "a.b.*", "a.*", "*"}, Patterns("a.b.c")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"lonely", "*"}, Patterns("lonely")); d != "" {
		t.Error(d)
	}
}

func FuzzKnown(f *testing.F) {
	for _, s := range append(specNames, "*", "stream.*", "", ".", "*.*") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		reached := slices.ContainsFunc(All(), func(e Type) bool { return slices.Contains(Patterns(e.Name), pattern) })
		if Known(pattern) != reached {
			t.Errorf("%q: Known is %v, but reached is %v", pattern, !reached, reached)
		}
	})
}

func TestEventsOfSomeGroups(t *testing.T) {
	t.Parallel()
	some := Of([]string{"webhook", "test"})
	if len(some) == 0 || len(Of(nil)) != len(All()) || !slices.ContainsFunc(some, func(e Type) bool { return e.Name == Test }) || slices.ContainsFunc(some, func(e Type) bool { return strings.HasPrefix(e.Name, "stream.") }) {
		t.Errorf("%d", len(some))
	}
	for pattern, want := range map[string]bool{"webhook.disabled": true, "webhook.*": true, "*": true, "stream.started": false, "stream.*": false, "": false} {
		if KnownIn(some, pattern) != want {
			t.Errorf("%q: %v", pattern, !want)
		}
	}
}
