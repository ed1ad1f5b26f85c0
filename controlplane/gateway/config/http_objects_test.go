package config

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sluice.dev/sluice/platform/http/paging"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/filters/decision"
)

// ask makes a request with a header, and returns the answer.
func ask(t *testing.T, h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const clips = `{"methods":["POST"],"path":"/v1/clips","product":"media","auth":["key"]}`

func TestOneObjectIsMadeChangedAndRemoved(t *testing.T) {
	t.Parallel()
	h, s := admin(t)
	made := ask(t, h, "PUT", "/routes/clips", clips, "If-None-Match", "*")
	tag := made.Header().Get("ETag")
	if made.Code != 201 || tag == "" || made.Header().Get(VersionHeader) != "2" || !strings.Contains(made.Body.String(), `"name":"clips"`) {
		t.Fatal(made.Code, made.Header(), made.Body)
	}
	if got := ask(t, h, "GET", "/routes/clips", ""); got.Code != 200 || got.Header().Get("ETag") != tag {
		t.Error(got.Code, got.Header())
	}
	if got := ask(t, h, "GET", "/routes/clips", "", "If-None-Match", tag); got.Code != 304 {
		t.Error(got.Code)
	}
	if got := ask(t, h, "PUT", "/classes/bulk", `{"per_minute":5}`); got.Code != 201 {
		t.Error(got.Code, got.Body)
	}
	slower := strings.Replace(clips, "}", `,"class":"bulk"}`, 1)
	if got := ask(t, h, "PUT", "/routes/clips", slower, "If-Match", tag); got.Code != 200 || got.Header().Get("ETag") == tag {
		t.Error("another object's change is in the way: ", got.Code, got.Body)
	}
	if got := ask(t, h, "DELETE", "/routes/clips", ""); got.Code != 204 || got.Header().Get(VersionHeader) != "5" {
		t.Error(got.Code, got.Header())
	}
	v, err := s.Latest(t.Context())
	if err != nil || len(v.Document.Routes) != 2 || len(v.Document.Classes) != 2 {
		t.Error(v, err)
	}
}

func TestConditionsThatDoNotHold(t *testing.T) {
	t.Parallel()
	h, _ := admin(t)
	for _, c := range []struct{ method, path, header, value string }{
		{"PUT", "/routes/clips", "If-Match", "*"},
		{"PUT", "/routes/health", "If-Match", `"other"`},
		{"PUT", "/routes/health", "If-None-Match", "*"},
		{"DELETE", "/routes/health", "If-Match", `"other", "another"`},
		{"DELETE", "/routes/none", "If-Match", "*"},
	} {
		if got := ask(t, h, c.method, c.path, clips, c.header, c.value); got.Code != 412 {
			t.Errorf("%s %s, %s %s: %d %s", c.method, c.path, c.header, c.value, got.Code, got.Body)
		}
	}
	tag := ask(t, h, "GET", "/routes/health", "").Header().Get("ETag")
	if got := ask(t, h, "DELETE", "/routes/health", "", "If-Match", `"other", `+tag); got.Code != 204 {
		t.Error(got.Code, got.Body)
	}
}

// Faults are named for one who knows the object only; those of others by name.
func TestObjectsThatAreRefused(t *testing.T) {
	t.Parallel()
	h, s := admin(t)
	for _, c := range []struct {
		method, path, body, fields string
		status                     int
	}{
		{"PUT", "/routes/clips", `{"path":"v1","product":"voice","auth":["key"]}`, "path product", 400},
		{"PUT", "/routes/clips", `{"surprise":1,"path":2}`, "path surprise", 400},
		{"PUT", "/routes/clips", strings.Replace(clips, "{", `{"name":"other",`, 1), "name", 400},
		{"PUT", "/routes/No%20name", clips, "name", 400},
		{"PUT", "/routes/clips", `[]`, "body", 400},
		{"DELETE", "/products/media", "", "routes.streams.get.product", 400},
		{"DELETE", "/classes/default", "", "classes plans.free.limits.default", 400},
		{"DELETE", "/classes/none", "", "", 404},
		{"GET", "/products/none", "", "", 404},
		{"PUT", "/routes/clips?note=" + strings.Repeat("n", 501), clips, "note", 400},
	} {
		var e struct {
			Error struct{ Details []decision.Detail }
		}
		got := ask(t, h, c.method, c.path, c.body)
		into(t, got, &e)
		var fields []string
		for _, d := range e.Error.Details {
			fields = append(fields, d.Field)
		}
		if got.Code != c.status || strings.Join(fields, " ") != c.fields {
			t.Errorf("%s %s: %d %v, want %s", c.method, c.path, got.Code, fields, c.fields)
		}
	}
	if v, err := s.Latest(t.Context()); err != nil || v.Number != 1 {
		t.Error(v.Number, err)
	}
}

func TestDryRunOfOneObject(t *testing.T) {
	t.Parallel()
	h, s := admin(t)
	for method, kind := range map[string]string{"PUT": "changed", "DELETE": "removed"} {
		var res PutResult
		got := ask(t, h, method, "/routes/health?dry_run=true", `{"path":"/healthz","respond":{"status":200},"auth":["none"]}`)
		into(t, got, &res)
		if got.Code != 200 || !res.DryRun || len(res.Changes) != 1 || res.Changes[0].Kind != kind {
			t.Errorf("%s: %d %+v", method, got.Code, res)
		}
	}
	if v, err := s.Latest(t.Context()); err != nil || v.Number != 1 {
		t.Error(v.Number, err)
	}
}

func TestEveryKindIsListed(t *testing.T) {
	t.Parallel()
	h, _ := admin(t)
	for path, name := range map[string]string{"/routes": "streams.get", "/products": "media", "/classes": "default", "/plans/free": "free"} {
		if got := ask(t, h, "GET", path, ""); got.Code != 200 || !strings.Contains(got.Body.String(), `"name":"`+name+`"`) {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
}

// A hundred people change a hundred different objects at once: all changes land.
func TestParallelEditsAllLand(t *testing.T) {
	t.Parallel()
	h, s := admin(t)
	const edits = 100
	var wg sync.WaitGroup
	for i := range edits {
		wg.Go(func() {
			body := strings.Replace(clips, "/v1/clips", fmt.Sprintf("/v1/clips%d", i), 1)
			if got := ask(t, h, "PUT", fmt.Sprintf("/routes/clips%d", i), body, "If-None-Match", "*"); got.Code != 201 {
				t.Errorf("edit %d: %d %s", i, got.Code, got.Body)
			}
		})
	}
	wg.Wait()
	v, err := s.Latest(t.Context())
	if err != nil || v.Number != edits+1 || len(v.Document.Routes) != edits+2 {
		t.Errorf("version %d with %d routes, %v", v.Number, len(v.Document.Routes), err)
	}
}

func TestHistoryAndRollback(t *testing.T) {
	t.Parallel()
	h, s := admin(t)
	ask(t, h, "PUT", "/routes/clips?note=new+clips", clips)
	ask(t, h, "DELETE", "/routes/health", "")

	var page paging.List[Entry]
	into(t, ask(t, h, "GET", "/config/versions?limit=2", ""), &page)
	if len(page.Data) != 2 || !page.Pagination.HasMore || page.Data[0].Number != 3 || page.Data[1].Note != "new clips" || page.Data[1].Changes != 1 || page.Data[1].Author != "admin" {
		t.Errorf("%+v", page)
	}
	into(t, ask(t, h, "GET", "/config/versions?before=9223372036854775807", ""), &page)
	if len(page.Data) == 0 {
		t.Error("no version is before the last number")
	}
	into(t, ask(t, h, "GET", "/config/versions?before=2", ""), &page)
	if len(page.Data) != 1 || page.Pagination.HasMore || page.Data[0].Number != 1 {
		t.Errorf("%+v", page)
	}
	for path, want := range map[string]string{
		"/config/versions/2":           "1: added routes.clips",
		"/config/versions/3":           "2: removed routes.health",
		"/config/versions/3?against=1": "1: added routes.clips, removed routes.health",
		"/config/versions/1?against=1": "1:",
	} {
		var v Described
		into(t, ask(t, h, "GET", path, ""), &v)
		var changes []string
		for _, c := range v.Changes {
			changes = append(changes, " "+c.Kind+" "+c.Path)
		}
		if got := fmt.Sprintf("%d:%s", v.Against, strings.Join(changes, ",")); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got := ask(t, h, "POST", "/config/versions/1/rollback", "", "If-Match", `"2"`); got.Code != 412 {
		t.Error(got.Code)
	}
	if got := ask(t, h, "POST", "/config/versions/1/rollback", "", "If-Match", `"3"`); got.Code != 200 || got.Header().Get("ETag") != `"4"` {
		t.Error(got.Code, got.Body)
	}
	v, err := s.Latest(t.Context())
	if err != nil || v.Note != "rollback to version 1" || !same(v.Document, small()) {
		t.Error(v, err)
	}
	for path, status := range map[string]int{
		"/config/versions/99": 404, "/config/versions/x": 400, "/config/versions/1?against=x": 400, "/config/versions/1?against=99": 404,
		"/config/versions?limit=101": 400, "/config/versions?before=0": 400,
	} {
		if got := ask(t, h, "GET", path, ""); got.Code != status {
			t.Errorf("%s: %d", path, got.Code)
		}
	}
}
