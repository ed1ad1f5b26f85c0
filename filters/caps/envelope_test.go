package caps

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/filters/decision"
)

func TestEnvelope(t *testing.T) {
	t.Parallel()
	type envelope struct {
		Error struct {
			Code, Message, RequestID, DocumentationURL string
			Details                                    []decision.Detail
		}
	}
	for _, details := range [][]decision.Detail{nil, {{Field: "a", Issue: `is "odd"`, Expected: "x"}}, {{Field: "a"}, {Field: "b"}}} {
		p := &Problem{Code: decision.InvalidRequest, Details: details}
		raw := p.AppendEnvelope([]byte(" "), "req\n1", "https://gw")
		var got map[string]map[string]any
		var typed envelope
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if err := json.Unmarshal(raw, &typed); err != nil {
			t.Fatal(err)
		}
		e := got["error"]
		if e["code"] != "invalid_request" || e["message"] == "" || e["request_id"] != "req\n1" || e["documentation_url"] != "https://gw/docs/errors/invalid_request" {
			t.Errorf("got %s", raw)
		}
		if diff := cmp.Diff(details, typed.Error.Details); diff != "" {
			t.Error(diff)
		}
	}
	if s := (&Problem{Code: decision.TooLarge}).Error(); s != "request_too_large" {
		t.Errorf("text %q", s)
	}
	if s := (&Problem{Code: decision.InvalidRequest, Details: []decision.Detail{{Field: "n", Issue: "is odd"}}}).Error(); s != "invalid_request: n is odd" {
		t.Errorf("text %q", s)
	}
}
