package decision

import (
	"encoding/json"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

// The codes of contract 1.3 and contract 5.4 to contract 5.10, with their statuses.
func TestCodesOfTheSpec(t *testing.T) {
	t.Parallel()
	for code, status := range map[Code]int{
		"STREAM_001": 400, "STREAM_002": 400, "STREAM_003": 429, "STREAM_004": 401, "STREAM_005": 400,
		"TRANSCODE_001": 503, "TRANSCODE_002": 400, "TRANSCODE_003": 400,
		"AUTH_001": 401, "AUTH_002": 403, "AUTH_003": 403,
		"BILLING_001": 402, "BILLING_002": 403, "BILLING_003": 403,
		"STORAGE_001": 413, "STORAGE_002": 400, "WEBHOOK_001": 0, "WEBHOOK_002": 400,
		"ROUTE_NOT_MAPPED": 403, "invalid_request": 400, "rate_limit_exceeded": 429,
	} {
		if got := Lookup(code); got.Code != code || got.Status != status {
			t.Errorf("%s: %+v, want status %d", code, got, status)
		}
	}
}

func TestEveryRowIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[Code]bool{}
	for _, row := range All() {
		if seen[row.Code] || row.Message == "" || row.Remedy == "" || (row.Status != 0 && (row.Status < 400 || row.Status > 599)) {
			t.Errorf("%+v", row)
		}
		seen[row.Code] = true
	}
	if got := Lookup("a slip"); got.Code != Internal || got.Status != 500 {
		t.Errorf("an unknown code: %+v", got)
	}
}

func TestDecision(t *testing.T) {
	t.Parallel()
	if !Pass.OK() || Deny(NotFound).OK() || Deny(NotFound).Code != NotFound {
		t.Error("the zero decision passes, and no other")
	}
	if got := DocsURL("https://gw", NotFound); got != "https://gw/docs/errors/not_found" {
		t.Error(got)
	}
}

// Whatever stands in an envelope, it is JSON and says what went in.
func FuzzAppendEnvelope(f *testing.F) {
	f.Add("req-1", "scope", "is missing", "a:b")
	f.Add("\"", "\\", "\n", "\u00e9")
	f.Fuzz(func(t *testing.T, id, field, issue, expected string) {
		d := Decision{Code: ScopeMissing, Detail: Detail{Field: field, Issue: issue, Expected: expected}}
		b := AppendEnvelope(nil, d, id, "http://gw")
		var got struct {
			Error struct {
				Code      Code
				RequestID string `json:"request_id"`
				Details   []Detail
			}
		}
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		ascii := strings.IndexFunc(id+field+issue+expected, func(r rune) bool { return r >= 0x7f }) < 0
		if got.Error.Code != ScopeMissing || (ascii && got.Error.RequestID != id) || (field != "") != (len(got.Error.Details) == 1) {
			t.Fatalf("%s", b)
		}
		short := len(field) <= MaxName && len(issue) <= MaxText && len(expected) <= MaxText
		if ascii && short && field != "" && got.Error.Details[0] != d.Detail {
			t.Fatalf("%+v, want %+v", got.Error.Details[0], d.Detail)
		}
		growth.Linear(t, len(id)+len(field)+len(issue)+len(expected), 24, 1<<10, func() { AppendEnvelope(nil, d, id, "http://gw") })
	})
}
