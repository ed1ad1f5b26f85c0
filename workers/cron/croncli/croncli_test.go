package croncli

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/platform/limits/growth"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestNextPrintsUTC(t *testing.T) {
	t.Parallel()
	p := Preview{Expr: "*/30 * * * *", Zone: "America/New_York", From: "2016-03-13T01:45:00-05:00", Count: 3}
	var out, errs bytes.Buffer
	if status := Next(p, now, &out, &errs); status != 0 {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	want := "2016-03-13T07:00:00Z\n2016-03-13T07:30:00Z\n2016-03-13T08:00:00Z\n"
	if out.String() != want || errs.Len() != 0 {
		t.Errorf("out %q, errors %q", out.String(), errs.String())
	}
}

func TestNextDefaults(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if status := Next(Preview{Expr: "@daily", Count: 1}, now, &out, &errs); status != 0 || out.String() != "2026-01-02T00:00:00Z\n" {
		t.Errorf("status %d, out %q, errors %q", status, out.String(), errs.String())
	}
}

func TestBadRequestsExitWithTwo(t *testing.T) {
	t.Parallel()
	good := Preview{Expr: "@daily", Zone: "UTC", Count: 1}
	table := map[string]func(*Preview){
		"day of month":   func(p *Preview) { p.Expr = "0 0 32 * *" },
		"never fires":    func(p *Preview) { p.Expr = "0 0 30 2 *" },
		"time zone":      func(p *Preview) { p.Zone = "Mars/Base" },
		"RFC 3339":       func(p *Preview) { p.From = "tomorrow" },
		"number of runs": func(p *Preview) { p.Count = 0 },
		"must be 1–1000": func(p *Preview) { p.Count = MaxRuns + 1 },
	}
	for reason, spoil := range table {
		p := good
		spoil(&p)
		var out, errs bytes.Buffer
		status := Next(p, now, &out, &errs)
		if status != 2 || out.Len() != 0 || !strings.Contains(errs.String(), reason) || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%+v: status %d, out %q, errors %q", p, status, out.String(), errs.String())
		}
	}
}

func TestBatchAnswersLineByLine(t *testing.T) {
	t.Parallel()
	in := `{"tz":"America/New_York","expr":"30 2 * * *","from":"2016-03-13T00:00:00-05:00"}

{"tz":"Nowhere","expr":"* * * * *","from":"2026-01-01T00:00:00Z"}
{"tz":"UTC","expr":"61 * * * *","from":"2026-01-01T00:00:00Z"}
{"tz":"UTC","expr":"* * * * *"}
not json
{"tz":"UTC","expr":"@yearly","from":"9999-06-01T00:00:00Z"}
{"tz":"UTC","expr":"* * * * *","from":"2026-01-01T00:00:00Z"}`
	var out, errs bytes.Buffer
	if status := Batch(strings.NewReader(in), &out, &errs); status != 0 {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	want := []string{`{"next":"2016-03-13T07:00:00Z"}`, "time zone", "minute", "required", "JSON", "year 10000", `{"next":"2026-01-01T00:01:00Z"}`}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d answers, want %d: %q", len(got), len(want), got)
	}
	for i := range want {
		isError := strings.HasPrefix(got[i], `{"error":`)
		if !strings.Contains(got[i], want[i]) || isError == strings.HasPrefix(want[i], "{") {
			t.Errorf("answer %d = %s, want %s", i, got[i], want[i])
		}
	}
}

func TestBatchRefusesEndlessLines(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if status := Batch(strings.NewReader(strings.Repeat("x", 2*maxLine)), &out, &errs); status != 1 || errs.Len() == 0 {
		t.Errorf("status %d, errors %q", status, errs.String())
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestClosedOutput(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	if status := Next(Preview{Expr: "@daily", Count: 1}, now, brokenWriter{}, &errs); status != 1 {
		t.Errorf("Next on a closed output: status %d", status)
	}
	if status := Batch(strings.NewReader("{}\n"), brokenWriter{}, &errs); status != 1 {
		t.Errorf("Batch on a closed output: status %d", status)
	}
}

func FuzzBatch(f *testing.F) {
	f.Add(`{"tz":"UTC","expr":"* * * * *","from":"2026-01-01T00:00:00Z"}`)
	f.Add(`{"tz":1}`)
	f.Add("[]\nnull\n{}")
	f.Fuzz(func(t *testing.T, in string) {
		growth.Linear(t, len(in), 512, 64<<10, func() { Batch(strings.NewReader(in), io.Discard, io.Discard) })
		var out, errs bytes.Buffer
		status := Batch(strings.NewReader(in), &out, &errs)
		if answers := strings.Count(out.String(), "\n"); status == 0 && answers > strings.Count(in, "\n")+1 {
			t.Errorf("%d answers to %q", answers, in)
		}
	})
}
