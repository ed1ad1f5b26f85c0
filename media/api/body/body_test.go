package body

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/limits/fairshare"
)

func TestWhichBodiesAreTaken(t *testing.T) {
	t.Parallel()
	sounds := Kind{Types: []string{"audio/", "application/ogg"}, Bytes: "a sound"}
	for kind, want := range map[string]decision.Code{
		"": "", "application/octet-stream": "", "audio/wav": "", "audio/ogg; codecs=opus": "", "application/ogg": "", "AUDIO/WAV": "",
		"application/oggs": decision.Storage002, "audio": decision.Storage002, "video/mp4": decision.Storage002, "text/html": decision.Storage002, "/": decision.Storage002, "audio/wav; =": decision.Storage002,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("12345"))
		r.Header.Set("Content-Type", kind)
		if err := sounds.Accept(r, 5); apierror.Code(err) != want {
			t.Errorf("%q: %v", kind, err)
		}
		if err := sounds.Accept(r, 4); want == "" && apierror.Code(err) != decision.Storage001 {
			t.Errorf("%q: %v", kind, err)
		}
	}
	table := plans.Table{"small": {FileBytes: 3}}
	if got := Limit(table, owner.Owner{Plan: "small"}, 5); got != 3 {
		t.Error(got)
	}
	if got := Limit(table, owner.Owner{Plan: "small"}, 2); got != 2 {
		t.Error(got)
	}
}

// A body is kept whole or not at all, whatever it said of its length; a place and a
// folder end with it.
func TestBodiesAreKeptWithinLimits(t *testing.T) {
	t.Parallel()
	pool, tool := fairshare.New(fairshare.Config{Places: 1}), ffmpeg.Tool{Dir: t.TempDir()}
	for name, c := range map[string]struct {
		body io.Reader
		want decision.Code
	}{
		"fits":       {strings.NewReader("12345"), ""},
		"is longer":  {io.MultiReader(strings.NewReader("123"), strings.NewReader("456")), decision.Storage001},
		"breaks off": {io.MultiReader(strings.NewReader("123"), broken{}), decision.InvalidRequest},
	} {
		folder, leave, err := Begin(pool, "a", tool)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, _, err := Begin(pool, "a", tool); apierror.Code(err) != decision.Transcode001 {
			t.Errorf("%s: a second body: %v", name, err)
		}
		size, err := Receive(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", c.body), folder, 5)
		if apierror.Code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		if kept, _ := os.ReadFile(folder.Input()); err == nil && (string(kept) != "12345" || size != 5) {
			t.Errorf("%s: %q, %d", name, kept, size)
		}
		leave()
	}
	if left, _ := os.ReadDir(tool.Dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the caller has gone") }
